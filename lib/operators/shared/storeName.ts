/** A name as part of one in the store: braces have a meaning there. */
export function storeName(name: string): string {
  return name.replace(/[%{}]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`);
}

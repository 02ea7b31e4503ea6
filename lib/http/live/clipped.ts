const LONGEST = 80;

/** Names of models and tenants may come from callers, and be of any length. */
export function clipped(name: string): string;
export function clipped(name: string | undefined): string | undefined;
export function clipped(name: string | undefined): string | undefined {
  return name === undefined || name.length <= LONGEST ? name : `${name.slice(0, LONGEST - 1)}…`;
}

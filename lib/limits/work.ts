/** A request that names no tokens is work too. */
export function workOf(tokens: number): number {
  return Math.max(1, tokens);
}

/** Powers of 4. */
export function sizeClassOf(tokens: number): number {
  return tokens < 1 ? 0 : 1 + Math.floor(Math.log2(tokens) / 2);
}

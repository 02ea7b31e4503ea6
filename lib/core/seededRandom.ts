/**
 * A random source that repeats itself for the same seed, uniform in [0, 1).
 *
 * Source: splitmix32, a 32-bit reduction of the SplitMix generator (Steele, Lea, Flood, 2014). Not for secrets.
 *
 * @example
 * ```ts
 * import { seededRandom } from 'sluice/testing';
 *
 * const random = seededRandom(7);
 * console.log(random() === seededRandom(7)()); // => true
 * ```
 */
export function seededRandom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x9e3779b9) | 0;
    let mixed = state ^ (state >>> 16);
    mixed = Math.imul(mixed, 0x21f0aaad);
    mixed ^= mixed >>> 15;
    mixed = Math.imul(mixed, 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 4_294_967_296;
  };
}

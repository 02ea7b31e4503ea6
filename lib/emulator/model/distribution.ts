import { positive, zeroOrMore } from '../../core/checks.ts';
import { invalidOption } from '../../core/errors.ts';

/** A number, or a log-normal distribution of numbers: half of them are below `median`, and `max` cuts the tail. */
export type Distribution = number | { readonly median: number; readonly sigma: number; readonly max?: number };

/** @throws SluiceError `invalid_option` unless every number that can come is finite and 0 or more. */
export function checkDistribution(option: string, value: Distribution): Distribution {
  if (typeof value === 'number') return zeroOrMore(option, value);
  if (typeof value !== 'object' || value === null) {
    throw invalidOption(option, 'a number or { median, sigma, max? }', value);
  }
  positive(`${option}.median`, value.median);
  zeroOrMore(`${option}.sigma`, value.sigma);
  if (value.max !== undefined) positive(`${option}.max`, value.max);
  return value;
}

/** Draws one number; draws nothing from `random` where there is nothing to choose. */
export function sample(distribution: Distribution, random: () => number): number {
  if (typeof distribution === 'number') return distribution;
  const { median, sigma, max = Infinity } = distribution;
  // Box and Muller, 1958. 1 - random() keeps the logarithm finite.
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return Math.min(max, median * Math.exp(sigma * normal));
}

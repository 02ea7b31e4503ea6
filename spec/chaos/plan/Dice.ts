import { seededRandom } from '../../../lib/testing/index.ts';

/** Draws what a plan is made of, the same for the same seed. */
export class Dice {
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
    // Neighbouring seeds begin alike.
    for (let i = 0; i < 5; i++) this.#random();
  }

  chance(probability: number): boolean {
    return this.#random() < probability;
  }

  whole(least: number, most: number): number {
    return least + Math.floor(this.#random() * (most - least + 1));
  }

  /** As often below the geometric middle as above it. */
  spread(least: number, most: number): number {
    return Math.round(least * (most / least) ** this.#random());
  }

  oneOf<T>(values: readonly T[]): T {
    return values[this.whole(0, values.length - 1)] as T;
  }

  /** With that probability what is drawn, else nothing. */
  maybe<T>(probability: number, draw: () => T): T | undefined {
    return this.chance(probability) ? draw() : undefined;
  }

  some<T>(count: number, draw: (index: number) => T): T[] {
    return Array.from({ length: count }, (_, index) => draw(index));
  }
}

import { cpuRounds, median } from './cpu.ts';
import type { Work } from './cpu.ts';

export const SIZES = [1, 10, 100, 1_000] as const;
export type Size = (typeof SIZES)[number];
export type Rounds = readonly Readonly<Record<string, number>>[];
export type BySize = Record<Size, Rounds>;

export interface SizePlan {
  readonly rounds: number;
  /** Chunks that one sample takes, at most 500 calls: so many that the clock's grain does not show. */
  readonly chunksASample: number;
  /** By each way, before anything is counted. */
  readonly warmUpCalls: number;
}

/** CPU microseconds of a call by size: one of each way in each round. */
export async function measureSizes(
  waysOf: (size: Size) => Readonly<Record<string, Work>>,
  { rounds, chunksASample, warmUpCalls }: SizePlan,
): Promise<BySize> {
  const out = {} as BySize;
  for (const size of SIZES) {
    const times = Math.min(500, chunksASample / size);
    // A service has made many calls before anybody looks: all that a call runs has been compiled by then.
    const warmUp = size === 1 ? warmUpCalls / times : 2;
    out[size] = await cpuRounds(waysOf(size), { times, rounds, warmUp });
  }
  return out;
}

export const usOf = (rounds: Rounds, way: string): number => median(rounds.map((row) => row[way] ?? NaN));

export const ratioOf = (rounds: Rounds, way: string, to: string): number =>
  median(rounds.map((row) => (row[way] ?? NaN) / (row[to] ?? NaN)));

/** What `way` adds to `to`, for the first chunk with all around it, and for each further one. */
export function addedOf(sizes: BySize, way: string, to: string): { callUs: number; chunkUs: number } {
  const added = (size: Size): number => median(sizes[size].map((row) => (row[way] ?? NaN) - (row[to] ?? NaN)));
  return { callUs: added(1), chunkUs: (added(1_000) - added(1)) / 999 };
}

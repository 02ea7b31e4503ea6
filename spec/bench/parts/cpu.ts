/** Work to be measured. What it returns is not looked at. */
export type Work = () => unknown;

const clean = (): void => void (globalThis as { gc?: (options: { type: 'minor' }) => void }).gc?.({ type: 'minor' });

/** CPU time in microseconds that one run of `work` takes, collectors and compilers included: the mean of `times` runs. */
export async function cpuUs(work: Work, times: number): Promise<number> {
  // What the one before has left behind is not this one's.
  clean();
  const before = process.cpuUsage();
  for (let at = 0; at < times; at++) {
    const result = work();
    if (result instanceof Promise) await result;
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / times;
}

export interface CpuRounds {
  /** Runs of each work in a round. */
  readonly times: number;
  readonly rounds: number;
  /** Rounds before those, which find code that no optimizer has seen, and are not counted. Default: 2. */
  readonly warmUp?: number;
}

/**
 * {@link cpuUs} of each work in each round. They take turns, and another one begins each round, so that a busy neighbour, a
 * warmer cache or a faster clock falls on all of them alike.
 */
export async function cpuRounds<N extends string>(
  works: Readonly<Record<N, Work>>,
  { times, rounds, warmUp = 2 }: CpuRounds,
): Promise<readonly Readonly<Record<N, number>>[]> {
  const entries = Object.entries<Work>(works) as [N, Work][];
  const out: Record<N, number>[] = [];
  for (let round = 0; round < warmUp + rounds; round++) {
    const row = Object.fromEntries(entries.map(([name]) => [name, NaN])) as Record<N, number>;
    for (let at = 0; at < entries.length; at++) {
      const [name, work] = entries[(at + round) % entries.length] as [N, Work];
      row[name] = await cpuUs(work, times);
    }
    if (round >= warmUp) out.push(row);
  }
  return out;
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? NaN;
}

import type OpenAI from 'openai';
import { createSluice } from '../../../lib/index.ts';
import type { Runtime } from '../../../lib/index.ts';
import { LoadRun, policyAsk } from './fullSpeed.ts';
import type { LoadResult, Provider, Reporting } from './fullSpeed.ts';
import { sleep } from './policyCalls.ts';

export interface WorkersPlan {
  readonly fewMs: number;
  readonly manyMs: number;
  /** Between the end of one answer and the next request of a worker. */
  readonly pauseMs: number;
}

const FEW = 16;
const MANY = 64;

/** 16 workers, each of which asks, reads, pauses and asks again; and after a while 64 of them in one instant. */
export async function runWorkers(
  openai: OpenAI,
  provider: Provider,
  emulator: Reporting,
  runtime: Runtime,
  { fewMs, manyMs, pauseMs }: WorkersPlan,
  progress: (text: string) => void = () => {},
): Promise<LoadResult> {
  await emulator.reset();
  const { requestsPerMinute, burstRequests } = provider;
  const sluice = createSluice(openai, { quota: { account: { requestsPerMinute, burstRequests } } }, { runtime });
  const run = new LoadRun(policyAsk(sluice, runtime), runtime);
  const endMs = fewMs + manyMs;
  const work = async (fromMs: number): Promise<void> => {
    await sleep(runtime, fromMs);
    while (run.elapsedMs < endMs) {
      await run.call();
      progress(`${run.calls} calls`);
      await sleep(runtime, pauseMs);
    }
  };
  // The few begin one after the other, as workers do that have been at it for a while.
  const few = Array.from({ length: FEW }, (_, at) => work((at * 400) / FEW));
  const more = Array.from({ length: MANY - FEW }, () => work(fewMs));
  await Promise.all([...few, ...more]);
  await sluice.close();
  return run.result(provider, emulator);
}

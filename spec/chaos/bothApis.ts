import { expect } from 'chai';
import { setTimeout as sleep } from 'node:timers/promises';
import { startEmulator } from '../../lib/emulator/index.ts';
import type { Emulator, EmulatorOptions } from '../../lib/emulator/index.ts';
import { BACKUP, pipeline, PRIMARY, seenOf } from './pipeline.ts';
import type { Api, Got, Pipeline, PipelineOptions } from './pipeline.ts';

/** Of every answer. */
export const TOKENS = 60;

export interface Stage {
  readonly api: Api;
  readonly emulator: Emulator;
  start(options?: Omit<PipelineOptions, 'api'>): Pipeline;
  /** What each of the two was asked. */
  primary(): ReturnType<typeof seenOf>;
  backup(): ReturnType<typeof seenOf>;
}

/** Mostly it is waited: so chat and the Responses API are played at once, each with a provider of its own. */
export function both(title: string, play: (stage: Stage) => Promise<void>, provider: EmulatorOptions = {}): void {
  const playWith = async (api: Api): Promise<void> => {
    const emulator = await startEmulator({ tokens: TOKENS, firstTokenMs: 10, tokenMs: 1, ...provider });
    try {
      await play({
        api,
        emulator,
        start: (options) => pipeline(emulator, { api, retry: { baseMs: 20, capMs: 80 }, ...options }),
        primary: () => seenOf(emulator, PRIMARY),
        backup: () => seenOf(emulator, BACKUP),
      });
      // What is given up is aborted, so that nothing of it goes on to cost.
      for (let waitedMs = 0; emulator.report().running > 0 && waitedMs < 500; waitedMs += 10) await sleep(10);
      expect(emulator.report().running, 'requests that still run').to.equal(0);
    } catch (error) {
      throw new Error(`${api}: ${String(error)}`, { cause: error });
    } finally {
      await emulator.close();
    }
  };
  it(title, async () => {
    const played = await Promise.allSettled((['chat', 'responses'] as const).map(playWith));
    for (const one of played) if (one.status === 'rejected') throw one.reason;
  });
}

export function expectWhole({ answer, error }: Got, text: string): void {
  expect(error, error?.message).to.equal(undefined);
  expect(answer.text).to.equal(text);
  expect(answer.finishReason).to.not.equal(null);
}

import { expect } from 'chai';
import { startEmulator } from '../../lib/emulator/index.ts';
import type { Emulator } from '../../lib/emulator/index.ts';
import { gapsMs, pipeline, PRIMARY, seenOf } from './pipeline.ts';
import type { Api } from './pipeline.ts';

const CALLERS = 20;
const HINT_MS = 500;
const HEADERS_MS = 150;
const GRAIN_MS = 5;

describe('one hint for twenty callers, over HTTP', () => {
  let emulator: Emulator;
  afterEach(() => emulator.close());

  for (const api of ['chat', 'responses'] satisfies Api[]) {
    it(`brings them back at twenty instants, none early, the first one alone: ${api}`, async () => {
      emulator = await startEmulator({ tokens: 3, headersMs: HEADERS_MS, firstTokenMs: HEADERS_MS });
      const stack = pipeline(emulator, { api });
      emulator.script([{ kind: 'error', error: 'requests', retryAfterMs: HINT_MS, times: CALLERS }]);
      const all = await Promise.all(Array.from({ length: CALLERS }, () => stack.get()));
      for (const { answer, error } of all) {
        expect(error).to.equal(undefined);
        expect(answer.text).to.equal(stack.textOf(PRIMARY, 3));
      }

      const records = seenOf(emulator, PRIMARY);
      const [refused, answered] = [records.slice(0, CALLERS), records.slice(CALLERS)];
      expect(refused.every(({ status }) => status === 429)).to.equal(true);
      expect(answered.map(({ status }) => status)).to.deep.equal(Array(CALLERS).fill(200));
      // The latest of the twenty hints holds for everyone.
      const lastHintMs = Math.max(...refused.map(({ endedMs }) => endedMs ?? Infinity));
      const [first] = answered;
      expect((first?.arrivedMs ?? 0) - lastHintMs).to.be.at.least(HINT_MS - GRAIN_MS);
      const [alone, ...gaps] = gapsMs(answered);
      expect(alone, 'until the first one is answered').to.be.at.least(HEADERS_MS - GRAIN_MS);
      for (const gap of gaps) expect(gap).to.be.above(0);
      // Where they are sent no other process has a say.
      const sentMs = stack.events.filter(({ type }) => type === 'attempt.started').map(({ atMs }) => atMs);
      const apartMs = sentMs.slice(CALLERS + 1).map((atMs, at) => atMs - (sentMs[CALLERS + at] ?? 0));
      for (const gap of apartMs) expect(gap).to.be.above(5);
      expect(new Set(apartMs.map(Math.round)).size, 'at random').to.be.above(3);
    });

    it(`holds newcomers of the same quota too, who were told nothing: ${api}`, async () => {
      emulator = await startEmulator({ tokens: 3, headersMs: 10, firstTokenMs: 10 });
      const stack = pipeline(emulator, { api });
      emulator.script([{ kind: 'error', error: 'requests', retryAfterMs: HINT_MS }]);
      const told = stack.get();
      while (!stack.events.some(({ type }) => type === 'cooldown'))
        await new Promise((resolve) => setTimeout(resolve, 5));
      await Promise.all([told, stack.get(), stack.get()]);
      const [refused, ...answered] = seenOf(emulator, PRIMARY);
      expect(answered).to.have.length(3);
      for (const { arrivedMs } of answered) {
        expect(arrivedMs - (refused?.endedMs ?? Infinity)).to.be.at.least(HINT_MS - GRAIN_MS);
      }
    });
  }
});

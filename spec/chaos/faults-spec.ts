import { expect } from 'chai';
import { setTimeout as sleep } from 'node:timers/promises';
import { both, expectWhole, TOKENS } from './bothApis.ts';
import { BACKUP, gapsMs, outcomesOf, pipeline, PRIMARY, seenOf } from './pipeline.ts';
import type { Got } from './pipeline.ts';

/** Timers may fire this much early by another process's clock. */
const GRAIN_MS = 5;

describe('sixteen faults of a primary with a fallback, over HTTP', () => {
  both('(1) waits out the Retry-After of one 429, and retries once', async ({ emulator, start, primary, backup }) => {
    const stack = start();
    const body = { error: { message: 'Too many requests', code: 'rate_limit_exceeded' } };
    emulator.script([{ kind: 'reply', status: 429, headers: { 'retry-after': '1' }, body, model: PRIMARY }]);
    expectWhole(await stack.get(), stack.textOf(PRIMARY, TOKENS));
    expect(outcomesOf(primary())).to.deep.equal(['failed', 'answered']);
    expect(gapsMs(primary())[0]).to.be.within(1_000 - GRAIN_MS, 2_000);
    expect(backup()).to.have.length(0);
  });

  both(
    '(2) tries apart and at uneven times under lasting 429s without a hint, then falls back',
    async ({ emulator, start, primary, backup }) => {
      const stack = start({ retry: { attempts: 4, baseMs: 100, capMs: 200 }, cooldown: { unhintedMs: 200 } });
      emulator.script([{ kind: 'error', error: 'requests', model: PRIMARY, times: 'always' }]);
      const got = await stack.get();
      expectWhole(got, stack.textOf(BACKUP, TOKENS));
      expect(outcomesOf(primary())).to.deep.equal(['failed', 'failed', 'failed', 'failed']);
      const gaps = gapsMs(primary());
      for (const gap of gaps) expect(gap).to.be.at.least(200 - GRAIN_MS);
      const waits = stack.events.filter((event) => event.type === 'retry.scheduled').map(({ waitMs }) => waitMs);
      expect(new Set(waits).size, 'at random').to.equal(3);
      expect(outcomesOf(backup())).to.deep.equal(['answered']);
      expect(stack.breakerOf(PRIMARY).snapshot().state, 'a 429 is no outage').to.equal('closed');
    },
    { dialect: 'none' },
  );

  both('(3) retries once after one 500', async ({ emulator, start, primary, backup }) => {
    const stack = start();
    emulator.script([{ kind: 'error', error: 'server_error', model: PRIMARY }]);
    expectWhole(await stack.get(), stack.textOf(PRIMARY, TOKENS));
    expect(outcomesOf(primary())).to.deep.equal(['failed', 'answered']);
    expect(backup()).to.have.length(0);
  });

  both('(4) falls back within the retry budget under lasting 503s', async ({ emulator, start, primary, backup }) => {
    const calls = 10;
    const stack = start({
      budget: { ratio: 0.2, minPerSecond: 0 },
      breaker: { consecutiveFailures: Infinity, errorRatio: Infinity },
    });
    emulator.script([{ kind: 'error', error: 'overloaded', model: PRIMARY, times: 'always' }]);
    const all = await Promise.all(Array.from({ length: calls }, () => stack.get()));
    for (const got of all) expectWhole(got, stack.textOf(BACKUP, TOKENS));
    expect(primary().length).to.be.within(calls + 1, calls * 1.2);
    expect(outcomesOf(backup())).to.deep.equal(Array(calls).fill('answered'));
  });

  both('(5) answers after a connection reset before the head', async ({ emulator, start, primary, backup }) => {
    const stack = start();
    emulator.script([{ kind: 'reset', after: 'connect', model: PRIMARY }]);
    expectWhole(await stack.get(), stack.textOf(PRIMARY, TOKENS));
    expect(outcomesOf(primary())).to.deep.equal(['cut', 'answered']);
    expect(backup()).to.have.length(0);
  });

  both(
    '(6) gives a silent provider up at the limit, and asks the fallback at once',
    async ({ emulator, start, primary, backup }) => {
      const stack = start({ timeouts: { headersMs: 300 } });
      emulator.script([{ kind: 'stall', after: 'connect', model: PRIMARY, times: 'always' }]);
      expectWhole(await stack.get(), stack.textOf(BACKUP, TOKENS));
      expect(outcomesOf(primary()), 'not tried again').to.deep.equal(['aborted']);
      const [silent] = primary();
      expect(silent?.abortedAfterMs).to.be.within(200, 600);
      const [gaveUp] = stack.events.filter((event) => event.type === 'attempt.ended');
      expect(gaveUp).to.include({ model: PRIMARY, code: 'timeout' });
      expect(gaveUp?.durationMs).to.be.within(300 - GRAIN_MS, 600);
      expect((backup()[0]?.arrivedMs ?? 0) - (silent?.endedMs ?? 0)).to.be.within(-GRAIN_MS, 100);
    },
  );

  both(
    '(7) limits the wait for the first token, and waits for it without a limit',
    async ({ api, emulator, start, primary, backup }) => {
      const slow = { kind: 'slow', firstTokenMs: 700, model: PRIMARY } as const;
      const limited = start({ timeouts: { firstContentMs: 300 } });
      emulator.script([slow]);
      expectWhole(await limited.get(), limited.textOf(BACKUP, TOKENS));
      expect(outcomesOf(primary())).to.deep.equal(['aborted']);
      expect(primary()[0]?.abortedAfterMs).to.be.below(600);

      emulator.reset();
      const patient = pipeline(emulator, { api, timeouts: { firstContentMs: Infinity } });
      emulator.script([slow]);
      const got = await patient.get();
      expectWhole(got, patient.textOf(PRIMARY, TOKENS));
      expect(got.firstMs).to.be.at.least(700 - GRAIN_MS);
      expect(backup()).to.have.length(0);
    },
  );

  both('(8) never takes a stream that was cut for an answer', async ({ api, emulator, start, primary, backup }) => {
    const cut = { kind: 'cut', after: 40, model: PRIMARY } as const;
    const restarting = start({ midStream: 'restart' });
    emulator.script([cut]);
    const got = await restarting.get();
    expectWhole(got, restarting.textOf(BACKUP, TOKENS));
    expect(got.restarts.map(({ code, model }) => [code, model])).to.deep.equal([['stream_truncated', BACKUP]]);
    expect(outcomesOf(primary()).concat(outcomesOf(backup()))).to.deep.equal(['cut', 'answered']);

    emulator.reset();
    const failing = pipeline(emulator, { api });
    emulator.script([cut]);
    const { error, answer } = await failing.get();
    expect(error?.code).to.equal('stream_truncated');
    expect(error?.partial?.text).to.equal(failing.textOf(PRIMARY, 40));
    expect(answer.finishReason).to.equal(null);
    expect(primary().length + backup().length, 'nothing is sent again behind what was shown').to.equal(1);
  });

  both('(9) finds a stall with the connection open by the idle limit', async ({ api, emulator, start, primary }) => {
    const stall = { kind: 'stall', after: 20, forMs: 30_000, commentsEveryMs: 50, model: PRIMARY } as const;
    const restarting = start({ midStream: 'restart', timeouts: { idleMs: 250 } });
    emulator.script([stall]);
    const got = await restarting.get();
    expectWhole(got, restarting.textOf(BACKUP, TOKENS));
    expect(got.restarts.map(({ code }) => code)).to.deep.equal(['stream_idle']);
    expect(outcomesOf(primary())).to.deep.equal(['aborted']);
    expect(got.tookMs).to.be.below(2_000);

    emulator.reset();
    const failing = pipeline(emulator, { api, timeouts: { idleMs: 250 } });
    emulator.script([stall]);
    const { error } = await failing.get();
    expect(error).to.include({ code: 'stream_idle', limit: 250 });
    expect(error?.partial?.text).to.equal(failing.textOf(PRIMARY, 20));
  });

  both(
    '(10) recovers from a malformed chunk or fails cleanly, and goes on',
    async ({ api, emulator, start, primary }) => {
      const restarting = start({ midStream: 'restart' });
      emulator.script([
        { kind: 'malformed', after: 'headers', model: PRIMARY },
        { kind: 'malformed', after: 5, model: PRIMARY },
      ]);
      const got = await restarting.get();
      expectWhole(got, restarting.textOf(BACKUP, TOKENS));
      expect(got.restarts.map(({ code }) => code)).to.deep.equal(['upstream_body_invalid']);
      expect(primary(), 'the first one came before any content, and was retried').to.have.length(2);

      emulator.reset();
      const failing = pipeline(emulator, { api });
      emulator.script([{ kind: 'malformed', after: 5, model: PRIMARY }]);
      const { error } = await failing.get();
      expect(error?.code).to.equal('upstream_body_invalid');
      expect(error?.partial?.text).to.equal(failing.textOf(PRIMARY, 5));
      expectWhole(await failing.get(), failing.textOf(PRIMARY, TOKENS));
    },
  );

  both(
    '(11) completes at once without [DONE] after the end of the answer',
    async ({ api, emulator, start, primary, backup }) => {
      const stack = start();
      emulator.script([
        { kind: 'no_done', model: PRIMARY },
        { kind: 'no_done', keepOpen: true, model: PRIMARY },
        { kind: 'no_done', keepOpen: true, also: [{ kind: 'no_usage' }], model: PRIMARY },
      ]);
      const closed = await stack.get();
      expectWhole(closed, stack.textOf(PRIMARY, TOKENS));
      const open = await stack.get();
      expectWhole(open, stack.textOf(PRIMARY, TOKENS));
      expect(open.tookMs, 'nothing is missing: usage has come').to.be.below(800);
      // Only the last limit tells that neither usage nor [DONE] will come. The Responses API has an event for the end.
      const silent = pipeline(emulator, { api, timeouts: { tailMs: 100 } });
      const got = await silent.get();
      expectWhole(got, stack.textOf(PRIMARY, TOKENS));
      expect(got.tookMs).to.be.below(800);
      expect(primary()).to.have.length(3);
      expect(backup()).to.have.length(0);
    },
  );

  both(
    '(12) asks the larger model where the context is too long, and never the same again',
    async ({ emulator, start, primary, backup }) => {
      const stack = start({ models: { context_too_long: ['larger'], default: [BACKUP] } });
      const content = 'word '.repeat(2_000);
      const got = await stack.get(content);
      expectWhole(got, stack.textOf('larger', TOKENS, content));
      expect(primary().map(({ refusal }) => refusal)).to.deep.equal(['context_too_long']);
      expect(outcomesOf(seenOf(emulator, 'larger'))).to.deep.equal(['answered']);
      expect(backup()).to.have.length(0);
    },
    { models: { [PRIMARY]: { contextTokens: 1_000 }, larger: {}, [BACKUP]: {} } },
  );

  both(
    '(13) passes a content filter on with its reason, and does not retry',
    async ({ emulator, start, primary, backup }) => {
      const stack = start();
      emulator.script([
        { kind: 'error', error: 'content_filtered', model: PRIMARY },
        { kind: 'finish', reason: 'content_filter', after: 5, model: PRIMARY },
      ]);
      const { error } = await stack.get();
      expect(error).to.include({ code: 'content_filtered', status: 400, retryable: false });
      expect(error?.message).to.include('content_policy_violation');
      const { answer, error: none } = await stack.get();
      expect(none).to.equal(undefined);
      expect(answer.finishReason).to.equal('content_filter');
      expect(answer.text).to.equal(stack.textOf(PRIMARY, 5));
      expect(primary()).to.have.length(2);
      expect(backup()).to.have.length(0);
    },
  );

  both(
    '(14) starts over cleanly where the fallback refuses an assistant prefix, and tells the first fault',
    async ({ emulator, start, backup }) => {
      const stack = start({ midStream: 'continue', canContinue: [BACKUP] });
      emulator.script([{ kind: 'cut', after: 40, model: PRIMARY }]);
      const got = await stack.get();
      expectWhole(got, stack.textOf(BACKUP, TOKENS));
      expect(
        got.restarts.map(({ code }) => code),
        'the fault, not the refusal',
      ).to.deep.equal(['stream_truncated']);
      expect(backup().map(({ status }) => status)).to.deep.equal([400, 200]);

      emulator.script([
        { kind: 'cut', after: 40, model: PRIMARY },
        { kind: 'pass', model: BACKUP, when: ({ prefix }) => prefix !== undefined },
        { kind: 'error', error: 'bad_request', model: BACKUP },
      ]);
      const { error } = await stack.get();
      expect(error).to.include({ code: 'stream_truncated', model: PRIMARY });
      expect(error?.attempts.map(({ model, code }) => [model, code])).to.deep.equal([
        [PRIMARY, 'stream_truncated'],
        [BACKUP, 'bad_request'],
        [BACKUP, 'bad_request'],
      ]);
      expect(error?.partial?.text).to.equal(stack.textOf(PRIMARY, 40));
    },
    { models: { [PRIMARY]: {}, [BACKUP]: { acceptsPrefix: false } } },
  );

  both(
    '(15) spares a primary that is down, answers everyone, and comes back to it in time',
    async ({ start, primary, backup }) => {
      // At a thirtieth of the time: down for 60 s, twenty requests 4 s apart, open for 15 s.
      const [everyMs, openMs] = [133, 500];
      const stack = start({ breaker: { consecutiveFailures: 2, openMs, rampMs: 167 } });
      const all: Promise<Got>[] = [];
      for (let n = 0; n < 20; n++) {
        all.push(stack.get(`request ${n}`));
        await sleep(everyMs);
      }
      for (const [n, got] of (await Promise.all(all)).entries()) {
        const served = got.answer.model ?? '';
        expectWhole(got, stack.textOf(served, TOKENS, `request ${n}`));
      }
      const records = primary();
      const down = records.filter(({ status }) => status === 503);
      // Two failures open it; what comes later probes.
      expect(down.length - 2).to.be.within(1, 4);
      const backMs = records.find(({ status }) => status === 200)?.arrivedMs ?? Infinity;
      // By what was asked, not by when: requests may be late on a busy machine.
      const spared = backup().filter(({ arrivedMs }) => arrivedMs < backMs);
      const untilMs = (down.at(-1)?.endedMs ?? Infinity) + openMs + everyMs;
      expect(spared.at(-1)?.arrivedMs, 'used again').to.be.below(untilMs);
      expect(backup().length).to.equal(20 - (records.length - down.length));
    },
    { outages: [{ kind: 'error', error: 'overloaded', model: PRIMARY, fromMs: 0, toMs: 2_000 }] },
  );

  both('(16) reports usage and model of the fallback, and bills it for nothing else', async ({ emulator, start }) => {
    const stack = start({ retry: { attempts: 2, baseMs: 1, capMs: 2 } });
    emulator.script([{ kind: 'error', error: 'server_error', model: PRIMARY, times: 'always' }]);
    const { answer } = await stack.get();
    expect(answer.model).to.equal(BACKUP);
    expect(answer.usage?.outputTokens).to.equal(TOKENS);
    const ended = stack.events.filter((event) => event.type === 'attempt.ended');
    expect(ended.map(({ model, outcome, usage }) => [model, outcome, usage?.outputTokens])).to.deep.equal([
      [PRIMARY, 'failure', undefined],
      [PRIMARY, 'failure', undefined],
      [BACKUP, 'success', TOKENS],
    ]);
    expect(ended.at(-1)).to.include({ responseModel: BACKUP, attempt: 3 });
    const settled = stack.events.filter((event) => event.type === 'settled');
    expect(settled.map(({ model, usedTokens }) => [model, usedTokens])).to.deep.equal([
      [PRIMARY, undefined],
      [PRIMARY, undefined],
      [BACKUP, answer.usage?.totalTokens],
    ]);
  });
});

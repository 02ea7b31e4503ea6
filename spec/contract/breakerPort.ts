import { expect } from 'chai';
import { SluiceError } from '../../lib/core/errors.ts';
import type { SluiceFact } from '../../lib/core/events.ts';
import { DROPPED, DROPPED_UNSENT, SUCCESS } from '../../lib/core/outcome.ts';
import type { Outcome } from '../../lib/core/outcome.ts';
import type { AcquireRequest, BreakerPass, BreakerPort } from '../../lib/core/ports.ts';
import type { CircuitBreakerOptions } from '../../lib/limits/breakerRules.ts';
import type { TestOf } from '../helpers/sideBySide.ts';

type Options = CircuitBreakerOptions & { readonly onFact?: (fact: SluiceFact) => void };

/** A kind of circuit breaker, and the time it runs on. */
export interface BreakerKind {
  /** How long breakers stay open here: long enough for what is to happen meanwhile on this kind of time. */
  readonly openMs: number;
  make(options: Options): BreakerPort;
  nowMs(): number;
  /** Lets time pass, and everything happen that is due by then. */
  pass(ms: number): Promise<void>;
}

interface Asked {
  pass?: BreakerPass;
  error?: SluiceError;
  completed?: true;
  revoked?: SluiceError;
  facts: string[];
  unsubscribe(): void;
}

const failure = (code: 'server_error' | 'rate_limited' | 'bad_request'): Outcome => ({
  kind: 'failure',
  error: new SluiceError(code, 'failed'),
});
const FAILED = failure('server_error');
const FAILURES = 2;

/** Long enough for an answer on a busy machine, and short against the time that a breaker stays open. */
const SOON_MS = 60;
/** What is certain to be over by then. */
const LONG_MS = 3000;

/**
 * What every circuit breaker must do, in one process or in many.
 * Where `play` plays tests side by side, the kinds that `kindOf` gives are one: all on the same time.
 */
export function breakerPortContract(kindOf: () => BreakerKind, play: TestOf = it): void {
  let kind: BreakerKind;
  let openMs: number;
  let brittle: Options;

  const test: TestOf = (title, body) =>
    play(title, () => {
      kind = kindOf();
      ({ openMs } = kind);
      brittle = { consecutiveFailures: FAILURES, openMs, halfOpenMaxProbes: 1, halfOpenMaxMs: 5000, rampMs: 0 };
      return body();
    });

  const until = async (condition: () => boolean): Promise<void> => {
    const endMs = kind.nowMs() + LONG_MS;
    while (!condition() && kind.nowMs() < endMs) await kind.pass(5);
    expect(condition(), `within ${LONG_MS} ms`).to.be.true;
  };
  const ask = async (breaker: BreakerPort, request: AcquireRequest = {}): Promise<Asked> => {
    const asked: Asked = { facts: [], unsubscribe: () => subscription.unsubscribe() };
    const subscription = breaker
      .acquire({
        onFact: (fact) => fact.type === 'breaker.changed' && asked.facts.push(`${fact.to}: ${fact.reason}`),
        ...request,
      })
      .subscribe({
        next: (pass) => {
          asked.pass = pass;
          pass.onRevoke((refusal) => (asked.revoked = refusal));
        },
        error: (error: SluiceError) => (asked.error = error),
        complete: () => (asked.completed = true),
      });
    await until(() => asked.pass !== undefined || asked.error !== undefined);
    return asked;
  };
  const isPassed = async (breaker: BreakerPort, outcome: Outcome = DROPPED_UNSENT): Promise<boolean> => {
    const { pass } = await ask(breaker);
    pass?.release(outcome);
    return pass !== undefined;
  };
  /** Sends, and ends like this. */
  const end = async (breaker: BreakerPort, outcome: Outcome): Promise<Asked> => {
    const asked = await ask(breaker);
    asked.pass?.dispatched();
    asked.pass?.release(outcome);
    return asked;
  };
  const state = (breaker: BreakerPort): string => breaker.snapshot().state;
  const opened = (breaker: BreakerPort): Promise<void> => until(() => state(breaker) === 'open');
  const trip = async (breaker: BreakerPort): Promise<void> => {
    for (let i = 0; i < FAILURES; i++) await end(breaker, FAILED);
    await opened(breaker);
  };
  const soon = (): Promise<void> => kind.pass(SOON_MS);

  test('lets pass while closed, one pass for each that asks', async () => {
    const breaker = kind.make(brittle);
    breaker.acquire({});
    const asked = await ask(breaker);

    expect(asked.completed).to.be.true;
    expect(breaker.snapshot()).to.include({ state: 'closed', retryAfterMs: 0 });
  });

  test('opens after failures in a row, and refuses with the wait', async () => {
    const breaker = kind.make(brittle);
    await trip(breaker);
    const { error } = await ask(breaker, { model: 'm' });

    expect(error).to.include({ code: 'circuit_open', source: 'local', model: 'm', while: 'entry' });
    expect(error?.retryAfterMs).to.be.within(1, openMs);
    expect(breaker.snapshot().retryAfterMs).to.be.within(1, openMs);
  });

  test('counts in a row only: a success in between begins anew', async () => {
    const breaker = kind.make(brittle);
    for (const outcome of [FAILED, SUCCESS, FAILED, SUCCESS]) await end(breaker, outcome);
    await soon();

    expect(state(breaker)).to.equal('closed');
  });

  test('opens at an error ratio, from so many calls on', async () => {
    const breaker = kind.make({ ...brittle, consecutiveFailures: Infinity, errorRatio: 0.5, minCalls: 4 });
    for (const outcome of [FAILED, FAILED, SUCCESS]) await end(breaker, outcome);
    await soon();
    expect(state(breaker)).to.equal('closed');
    await end(breaker, FAILED);

    await opened(breaker);
  });

  test('is taught nothing by cancels, by mistakes of the caller, and by limits unless told so', async () => {
    const breaker = kind.make(brittle);
    for (const outcome of [DROPPED, failure('bad_request'), failure('rate_limited')]) {
      for (let i = 0; i < 3; i++) await end(breaker, outcome);
    }
    await soon();
    expect(state(breaker)).to.equal('closed');

    const strict = kind.make({ ...brittle, countRateLimited: true });
    await end(strict, failure('rate_limited'));
    await end(strict, failure('rate_limited'));
    await opened(strict);
  });

  test('counts a pass once, however often it is released', async () => {
    const breaker = kind.make(brittle);
    const { pass } = await ask(breaker);
    pass?.release(FAILED);
    pass?.release(FAILED);
    await soon();

    expect(state(breaker)).to.equal('closed');
  });

  test('lets one probe go after the open time, and closes if it succeeds', async () => {
    const breaker = kind.make(brittle);
    await trip(breaker);
    await kind.pass(openMs + 20);
    const probe = await ask(breaker);
    expect(probe.pass).to.not.be.undefined;
    expect((await ask(breaker)).error?.code).to.equal('circuit_open');
    expect(state(breaker)).to.equal('half_open');

    probe.pass?.release(SUCCESS);
    await until(() => state(breaker) === 'closed');
    expect(await isPassed(breaker)).to.be.true;
  });

  test('opens again if the probe fails', async () => {
    const breaker = kind.make(brittle);
    await trip(breaker);
    await kind.pass(openMs + 20);
    await end(breaker, FAILED);
    await opened(breaker);

    expect(await isPassed(breaker)).to.be.false;
  });

  test('gives the place of a probe that was dropped to the next one', async () => {
    const breaker = kind.make(brittle);
    await trip(breaker);
    await kind.pass(openMs + 20);
    const probe = await ask(breaker);
    probe.pass?.dispatched();
    probe.pass?.release(DROPPED);
    await soon();

    expect((await ask(breaker)).pass).to.not.be.undefined;
    expect(state(breaker)).to.equal('half_open');
  });

  test('opens again for a probe that is stuck, and takes it back if it was not sent', async () => {
    const breaker = kind.make({ ...brittle, halfOpenMaxMs: openMs / 2 });
    await trip(breaker);
    await kind.pass(openMs + 20);
    const probe = await ask(breaker);
    await until(() => probe.revoked !== undefined);

    expect(probe.revoked).to.include({ code: 'circuit_open', while: 'queue' });
    expect(state(breaker)).to.equal('open');
  });

  test('does not take a probe with content for one that is stuck', async () => {
    const breaker = kind.make({ ...brittle, halfOpenMaxMs: openMs });
    await trip(breaker);
    await kind.pass(openMs + 20);
    const probe = await ask(breaker);
    probe.pass?.dispatched();
    probe.pass?.firstContent?.();
    await kind.pass(1.5 * openMs);
    await ask(breaker);
    expect(state(breaker)).to.equal('half_open');

    probe.pass?.release(SUCCESS);
    await until(() => state(breaker) === 'closed');
  });

  test('takes back what was let pass and not sent when it opens, and nothing else', async () => {
    const breaker = kind.make(brittle);
    const [sent, unsent, gone] = [await ask(breaker), await ask(breaker), await ask(breaker)];
    sent.pass?.dispatched();
    gone.pass?.release(DROPPED_UNSENT);
    await trip(breaker);
    await until(() => unsent.revoked !== undefined);

    expect(unsent.revoked).to.include({ code: 'circuit_open', while: 'queue' });
    expect(unsent.revoked?.retryAfterMs).to.be.within(1, openMs);
    expect([sent.revoked, gone.revoked]).to.deep.equal([undefined, undefined]);
  });

  test('ignores how those ended that it let pass before', async () => {
    const breaker = kind.make(brittle);
    const old = [await ask(breaker), await ask(breaker), await ask(breaker)];
    for (const { pass } of old) pass?.dispatched();
    await trip(breaker);
    await kind.pass(openMs + 20);
    const probe = await ask(breaker);
    old[0]?.pass?.release(SUCCESS);
    await soon();
    expect(state(breaker)).to.equal('half_open');
    probe.pass?.release(SUCCESS);
    await until(() => state(breaker) === 'closed');
    old[1]?.pass?.release(FAILED);
    old[2]?.pass?.release(FAILED);
    await soon();

    expect(state(breaker)).to.equal('closed');
  });

  test('lets a growing part of the traffic through after closing', async () => {
    const breaker = kind.make({ ...brittle, rampMs: 3 * openMs, halfOpenShare: 0.1 });
    await trip(breaker);
    await kind.pass(openMs + 20);
    await end(breaker, SUCCESS);
    await until(() => state(breaker) === 'ramping');
    const held = await ask(breaker);
    const part = async (): Promise<number> => {
      let passed = 0;
      for (let i = 0; i < 40; i++) if (await isPassed(breaker, SUCCESS)) passed++;
      return passed / 40;
    };
    expect(await part()).to.be.below(0.6);
    await kind.pass(3 * openMs + 100);
    expect(await part()).to.equal(1);
    held.pass?.release(SUCCESS);

    expect(state(breaker)).to.equal('closed');
  });

  test('tells whoever brought a change about, and who listens to all', async () => {
    const all: string[] = [];
    const breaker = kind.make({
      ...brittle,
      onFact: (fact) => {
        if (fact.type === 'breaker.changed') all.push(`${fact.from} ${fact.to} ${fact.reason}`);
        throw new Error('a fault of its own');
      },
    });
    const first = await end(breaker, FAILED);
    const second = await end(breaker, FAILED);
    await opened(breaker);
    await kind.pass(openMs + 20);
    const probe = await end(breaker, SUCCESS);
    await until(() => state(breaker) === 'closed');

    expect(first.facts).to.be.empty;
    expect(second.facts).to.deep.equal(['open: consecutive_failures']);
    expect(probe.facts).to.deep.equal(['half_open: open_time_over', 'closed: probe_succeeded']);
    expect(all).to.deep.equal([
      'closed open consecutive_failures',
      'open half_open open_time_over',
      'half_open closed probe_succeeded',
    ]);
  });

  test('keeps no place for a probe that was not waited for', async () => {
    const breaker = kind.make(brittle);
    await trip(breaker);
    await kind.pass(openMs + 20);
    let pass: BreakerPass | undefined;
    breaker
      .acquire({})
      .subscribe((given) => (pass = given))
      .unsubscribe();
    pass?.release(DROPPED_UNSENT);
    await soon();

    expect((await ask(breaker)).pass).to.not.be.undefined;
  });

  test('refuses wrong options, naming them', () => {
    expect(() => kind.make({ openMs: 0 })).to.throw(SluiceError, 'openMs must be');
    expect(() => kind.make({ errorRatio: 2 })).to.throw(SluiceError, 'errorRatio must be');
  });
}

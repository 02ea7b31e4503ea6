import { expect } from 'chai';
import { SluiceError } from '../../lib/core/errors.ts';
import { DROPPED, DROPPED_UNSENT, SUCCESS } from '../../lib/core/outcome.ts';
import type { Cost, Grant, QuotaPort, QuotaRequest, QuotaSettlement } from '../../lib/core/ports.ts';
import type { QuotaOptions } from '../../lib/limits/layersOf.ts';
import type { TestOf } from '../helpers/sideBySide.ts';
import { hintsOf } from '../helpers/hintsOf.ts';

/** A kind of quota, and the time it runs on. */
export interface QuotaKind {
  make(options: QuotaOptions): QuotaPort;
  nowMs(): number;
  /** Lets time pass, and everything happen that is due by then. */
  pass(ms: number): Promise<void>;
}

interface Asked {
  grant?: Grant;
  error?: SluiceError;
  completed?: true;
  queued?: { readonly position: number; readonly waitMs: number | undefined };
  settled?: QuotaSettlement;
  pausedMs?: number;
  unsubscribe(): void;
}

const noHints = hintsOf();
const usage = (totalTokens: number) => ({
  inputTokens: totalTokens,
  outputTokens: 0,
  totalTokens,
  cachedInputTokens: undefined,
  reasoningTokens: undefined,
});
const guess = (tokens: number, requests = 1): Cost => ({ requests, tokens, explicit: false });
const named = (tokens: number, requests = 1): Cost => ({ requests, tokens, explicit: true });

/** Long enough for an answer on a busy machine, and short against what a quota of one a minute gains. */
const SOON_MS = 100;
/** What is certain to be over by then, whatever margins, jitter and the machine add. */
const LONG_MS = 3000;

/**
 * What every quota must do, in one process or in many.
 * Where `play` plays tests side by side, the kinds that `kindOf` gives are one: all on the same time.
 */
export function quotaPortContract(kindOf: () => QuotaKind, play: TestOf = it): void {
  let kind: QuotaKind;

  const test: TestOf = (title, body) =>
    play(title, () => {
      kind = kindOf();
      return body();
    });

  const ask = (quota: QuotaPort, cost: Cost = named(0), request: Partial<QuotaRequest> = {}): Asked => {
    const asked: Asked = { unsubscribe: () => subscription.unsubscribe() };
    const subscription = quota
      .acquire({
        cost,
        onQueued: (position, waitMs) => (asked.queued = { position, waitMs }),
        onSettled: (settled) => (asked.settled = settled),
        onCooldown: (pausedMs) => (asked.pausedMs = pausedMs),
        ...request,
      })
      .subscribe({
        next: (grant) => (asked.grant = grant),
        error: (error: SluiceError) => (asked.error = error),
        complete: () => (asked.completed = true),
      });
    return asked;
  };

  const until = async (condition: () => boolean, withinMs = LONG_MS): Promise<void> => {
    const endMs = kind.nowMs() + withinMs;
    while (!condition() && kind.nowMs() < endMs) await kind.pass(10);
    expect(condition(), `within ${withinMs} ms`).to.be.true;
  };
  const soon = (): Promise<void> => kind.pass(SOON_MS);
  const granted = (asked: Asked): Promise<void> => until(() => asked.grant !== undefined);
  const isGranted = (...asked: readonly Asked[]): boolean => asked.every(({ grant }) => grant !== undefined);

  test('takes nothing before it is subscribed to, and emits one grant', async () => {
    const quota = kind.make({ requestsPerMinute: 1 });
    quota.acquire({ cost: named(0) });
    const asked = ask(quota, named(7));
    await granted(asked);

    expect(asked.completed).to.be.true;
    expect(asked.grant).to.include({ reservedTokens: 7 });
  });

  test('grants a burst, then as the quota refills, in order', async () => {
    const quota = kind.make({ requestsPerMinute: 60, burstRequests: 2 });
    const asked = [0, 1, 2].map(() => ask(quota));
    await until(() => isGranted(asked[0]!, asked[1]!));

    expect(asked[2]?.grant).to.be.undefined;
    expect(asked[2]?.queued?.position).to.be.within(1, 2);
    expect(asked[2]?.queued?.waitMs).to.be.within(600, 1300);
    await until(() => isGranted(...asked));
  });

  test('takes its cost from every layer or from none', async () => {
    const quota = kind.make({
      layers: { account: { requestsPerMinute: 1, burstRequests: 2 }, model: { tokensPerMinute: 100 } },
    });
    const first = ask(quota, named(100));
    await granted(first);
    const waiting = ask(quota, named(50));
    await soon();
    expect(waiting.grant).to.be.undefined;

    waiting.unsubscribe();
    const other = ask(quota, named(0));
    await until(() => isGranted(other));
  });

  test('lets nobody pass one who waits', async () => {
    const quota = kind.make({ requestsPerMinute: 600, burstRequests: 100, tokensPerMinute: 100, maxWaitMs: Infinity });
    await granted(ask(quota, named(100)));
    ask(quota, named(50));
    await soon();
    const small = ask(quota, named(0));
    await soon();

    expect(small.grant).to.be.undefined;
  });

  test('refuses a named cost above a minute, and clamps a guess', async () => {
    const quota = kind.make({ requestsPerMinute: 60, burstRequests: 10, tokensPerMinute: 100 });
    const wrong = ask(quota, named(101));
    const clamped = ask(quota, guess(101));
    await until(() => isGranted(clamped));

    expect(wrong.error).to.include({ code: 'cost_too_large', limit: 100, requested: 101 });
    expect(clamped.grant?.reservedTokens).to.equal(100);
  });

  test('refuses a cost that is no number', () => {
    expect(ask(kind.make({ requestsPerMinute: 60 }), named(NaN)).error?.code).to.equal('invalid_option');
  });

  test('bounds those who wait', async () => {
    const quota = kind.make({ requestsPerMinute: 2, burstRequests: 1, maxWaiting: 1, maxWaitMs: Infinity });
    await granted(ask(quota));
    ask(quota);
    await soon();
    const third = ask(quota);
    await until(() => third.error !== undefined);

    expect(third.error).to.include({ code: 'queue_full', limit: 1 });
    expect(third.error?.retryAfterMs).to.be.within(1000, 70_000);
  });

  test('refuses on entry what cannot come in time, and takes nothing for it', async () => {
    const quota = kind.make({ requestsPerMinute: 6, burstRequests: 1, maxWaitMs: 2000 });
    await granted(ask(quota));
    const bounded = ask(quota);
    const late = ask(quota, named(0), { maxWaitMs: 60_000, deadlineAtMs: kind.nowMs() + 1000 });
    await until(() => bounded.error !== undefined && late.error !== undefined);

    expect(bounded.error).to.include({ code: 'queue_timeout', limit: 2000 });
    expect(late.error).to.include({ code: 'timeout_deadline' });
    expect(bounded.error?.retryAfterMs).to.be.within(5000, 10_400);
    const patient = ask(quota, named(0), { maxWaitMs: 60_000 });
    await until(() => patient.queued !== undefined);
    expect(patient.queued?.waitMs).to.be.below(10_400);
  });

  test('refuses at once where the deadline has passed', () => {
    const asked = ask(kind.make({ requestsPerMinute: 60 }), named(0), { deadlineAtMs: kind.nowMs() });

    expect(asked.error).to.include({ code: 'timeout_deadline' });
  });

  test('moves those behind up when one leaves the line', async () => {
    const quota = kind.make({ tokensPerMinute: 600, burstTokens: 10, maxWaitMs: Infinity });
    await granted(ask(quota, named(10)));
    const large = ask(quota, named(600));
    await soon();
    const small = ask(quota, named(1));
    await soon();
    expect(small.grant).to.be.undefined;

    large.unsubscribe();
    await until(() => isGranted(small));
  });

  test('gives all back that was cancelled before it was sent, and nothing afterwards', async () => {
    const quota = kind.make({ requestsPerMinute: 1, burstRequests: 1 });
    const first = ask(quota);
    await granted(first);
    first.grant?.release(DROPPED_UNSENT);
    first.grant?.release(DROPPED_UNSENT);
    const second = ask(quota, named(0), { maxWaitMs: Infinity });
    await until(() => isGranted(second));
    second.grant?.dispatched();
    second.grant?.release(DROPPED);
    const third = ask(quota, named(0), { maxWaitMs: Infinity });
    await soon();

    expect(third.grant).to.be.undefined;
  });

  test('settles by usage in both directions, or upwards only', async () => {
    for (const [settle, refundedTokens, fits] of [
      ['usage', 70, true],
      ['reserved', 0, false],
    ] as const) {
      const quota = kind.make({ tokensPerMinute: 100, settle });
      const first = ask(quota, named(80));
      await granted(first);
      first.grant?.dispatched();
      first.grant?.settle(usage(10));
      first.grant?.release(SUCCESS);
      expect(first.settled).to.deep.equal({ reservedTokens: 80, usedTokens: 10, refundedTokens });
      await soon();
      const second = ask(quota, named(80), { maxWaitMs: Infinity });
      if (fits) await granted(second);
      else await soon();
      expect(isGranted(second), settle).to.equal(fits);
    }
  });

  test('charges what was used above the reservation', async () => {
    const quota = kind.make({ tokensPerMinute: 100 });
    const first = ask(quota, named(10));
    await granted(first);
    first.grant?.settle(usage(90));
    first.grant?.release(SUCCESS);
    await soon();
    const second = ask(quota, named(50), { maxWaitMs: Infinity });
    await soon();

    expect(second.grant).to.be.undefined;
  });

  test('holds everyone while the provider asks for a wait, then lets one go alone until it is answered', async () => {
    const quota = kind.make({ requestsPerMinute: 60_000, cooldown: { trialMs: 60_000, staggerMs: 0 } });
    const first = ask(quota);
    await granted(first);
    first.grant?.dispatched();
    first.grant?.observe({ ...noHints, retryAfterMs: 1000 });
    await soon();
    const held = [0, 1, 2].map(() => ask(quota));
    await soon();
    expect(held.map(({ grant }) => grant)).to.deep.equal([undefined, undefined, undefined]);
    await until(() => first.pausedMs !== undefined);
    expect(first.pausedMs).to.be.within(1, 1000);

    await until(() => isGranted(held[0]!));
    await soon();
    expect(held[1]?.grant).to.be.undefined;
    held[0]?.grant?.dispatched();
    held[0]?.grant?.responded?.(200);
    await until(() => isGranted(...held));
  });

  test('pauses for a rejection without a hint', async () => {
    const quota = kind.make({ requestsPerMinute: 60_000, cooldown: { unhintedMs: 60_000 }, maxWaitMs: Infinity });
    const first = ask(quota);
    await granted(first);
    first.grant?.dispatched();
    first.grant?.release({ kind: 'failure', error: new SluiceError('rate_limited', 'too many', { status: 429 }) });
    await soon();
    const second = ask(quota);
    await soon();

    expect(second.grant).to.be.undefined;
    await until(() => quota.snapshot().cooldownMs > 0);
    expect(quota.snapshot().cooldownMs).to.be.within(55_000, 62_000);
  });

  test('believes a provider that has less left', async () => {
    const quota = kind.make({ requestsPerMinute: 60, burstRequests: 50, maxWaitMs: Infinity });
    const first = ask(quota);
    await granted(first);
    first.grant?.dispatched();
    const requests = { limit: 60, remaining: 0, resetMs: undefined, windowMs: 60_000 };
    first.grant?.observe({ ...noHints, requests });
    await soon();
    const second = ask(quota, named(0, 10));
    await soon();

    expect(second.grant).to.be.undefined;
    await until(() => (quota.snapshot().layers[0]?.requests?.level ?? Infinity) < 2);
  });

  test('shows its layers', async () => {
    const quota = kind.make({ requestsPerMinute: 6, burstRequests: 4, layers: { model: { tokensPerMinute: 600 } } });
    const first = ask(quota, named(60));
    await granted(first);

    const { waiting, cooldownMs, layers } = quota.snapshot();
    expect({ waiting, cooldownMs }).to.deep.equal({ waiting: 0, cooldownMs: 0 });
    expect(layers.map(({ layer }) => layer)).to.deep.equal(['account', 'model']);
    expect(layers[0]?.requests).to.deep.include({ burst: 4, perMinute: 6 });
    expect(layers[0]?.requests?.level).to.be.within(2.5, 3.5);
    expect(layers[1]?.tokens?.level).to.be.within(535, 560);
  });

  test('refuses wrong options, naming them', () => {
    const message = (options: QuotaOptions): string => {
      try {
        kind.make(options);
      } catch (error) {
        return (error as SluiceError).message;
      }
      return '';
    };
    expect(message({})).to.include('requestsPerMinute or tokensPerMinute');
    expect(message({ layers: { model: { tokensPerMinute: NaN } } })).to.include('model.tokensPerMinute');
    expect(message({ requestsPerMinute: 1, reportsTo: 'model' })).to.include('reportsTo');
    expect(message({ requestsPerMinute: 1, cooldown: { jitter: -1 } })).to.include('cooldown.jitter');
  });
}

import { expect } from 'chai';
import type { SluiceError } from '../../lib/core/errors.ts';
import { SUCCESS } from '../../lib/core/outcome.ts';
import type { Grant, QuotaPort } from '../../lib/core/ports.ts';
import type { QuotasOptions } from '../../lib/operators/createQuotas.ts';
import type { TestOf } from '../helpers/sideBySide.ts';
import { hintsOf } from '../helpers/hintsOf.ts';

/** A kind of quotas whose routes share layers, and the time they run on. */
export interface RoutesKind {
  /** The way of a model, and of a tenant to it. */
  make(options: QuotasOptions): (model: string, tenant?: string) => QuotaPort;
  nowMs(): number;
  /** Lets time pass, and everything happen that is due by then. */
  pass(ms: number): Promise<void>;
}

interface Asked {
  grant?: Grant;
  error?: SluiceError;
  unsubscribe(): void;
}

const noHints = hintsOf();
/** Long enough for an answer on a busy machine, and short against what a quota of one a minute gains. */
const SOON_MS = 100;
const LONG_MS = 5000;

/**
 * What quotas of several routes must do, in one process or in many.
 * Where `play` plays tests side by side, the kinds that `kindOf` gives are one: all on the same time.
 */
export function quotaRoutesContract(kindOf: () => RoutesKind, play: TestOf = it): void {
  let kind: RoutesKind;

  const test: TestOf = (title, body) =>
    play(title, () => {
      kind = kindOf();
      return body();
    });

  const ask = (quota: QuotaPort, tokens = 0): Asked => {
    const asked: Asked = { unsubscribe: () => subscription.unsubscribe() };
    const subscription = quota
      .acquire({ cost: { requests: 1, tokens, explicit: true }, maxWaitMs: Infinity })
      .subscribe({
        next: (grant) => (asked.grant = grant),
        error: (error: SluiceError) => (asked.error = error),
      });
    return asked;
  };
  const until = async (condition: () => boolean): Promise<void> => {
    const endMs = kind.nowMs() + LONG_MS;
    while (!condition() && kind.nowMs() < endMs) await kind.pass(10);
    expect(condition(), `within ${LONG_MS} ms`).to.be.true;
  };
  const soon = (): Promise<void> => kind.pass(SOON_MS);
  const granted = async (asked: Asked): Promise<Grant> => {
    await until(() => asked.grant !== undefined);
    return asked.grant as Grant;
  };
  const sent = async (asked: Asked): Promise<Grant> => {
    const grant = await granted(asked);
    grant.dispatched();
    return grant;
  };

  test('take from the layer that they share, and each from its own', async () => {
    const of = kind.make({ account: { requestsPerMinute: 1, burstRequests: 2 }, models: { default: {} } });
    await granted(ask(of('a')));
    await granted(ask(of('b')));
    const third = ask(of('a'));
    await soon();

    expect(third.grant).to.be.undefined;
    third.unsubscribe();
  });

  test('do not hold up one model for those who wait for the room of another', async () => {
    const of = kind.make({
      account: { requestsPerMinute: 60_000 },
      models: { a: { requestsPerMinute: 1 }, b: { requestsPerMinute: 600, burstRequests: 10 } },
    });
    await granted(ask(of('a')));
    const waiting = [0, 1, 2].map(() => ask(of('a')));
    await soon();
    for (let i = 0; i < 5; i++) await granted(ask(of('b')));

    expect(waiting.map(({ grant }) => grant)).to.deep.equal([undefined, undefined, undefined]);
    for (const each of waiting) each.unsubscribe();
  });

  test('give what they share to whoever came first', async () => {
    const of = kind.make({ account: { requestsPerMinute: 120, burstRequests: 1 }, models: { default: {} } });
    await granted(ask(of('a')));
    const order: string[] = [];
    const asked: Asked[] = [];
    for (const model of ['b', 'a', 'c']) {
      const one = ask(of(model));
      asked.push(one);
      void granted(one).then(
        () => order.push(model),
        () => {},
      );
      await soon();
    }
    await until(() => order.length === 3);

    expect(order).to.deep.equal(['b', 'a', 'c']);
  });

  test('take nothing of what is shared while there is no room in their own', async () => {
    const of = kind.make({
      account: { tokensPerMinute: 100 },
      models: { a: { requestsPerMinute: 1 }, default: {} },
    });
    await granted(ask(of('a')));
    const waiting = ask(of('a'), 100);
    await soon();
    await granted(ask(of('b'), 100));

    expect(waiting.grant).to.be.undefined;
    waiting.unsubscribe();
  });

  test('hold only the model that the provider asked to wait for', async () => {
    const of = kind.make({ account: { requestsPerMinute: 60_000 }, models: { default: {} } });
    const grant = await sent(ask(of('a')));
    grant.observe({ ...noHints, retryAfterMs: 60_000 });
    await soon();
    const held = ask(of('a'));
    await granted(ask(of('b')));

    expect(held.grant).to.be.undefined;
    expect(of('a').snapshot().cooldownMs).to.be.within(50_000, 62_000);
    expect(of('b').snapshot().cooldownMs).to.equal(0);
    held.unsubscribe();
  });

  test('share a pause with the tenants of a model', async () => {
    const of = kind.make({
      account: { requestsPerMinute: 60_000 },
      models: { default: {} },
      tenants: { default: { requestsPerMinute: 6000 } },
    });
    const grant = await sent(ask(of('a', 'acme')));
    grant.observe({ ...noHints, retryAfterMs: 60_000 });
    await soon();
    const held = [ask(of('a')), ask(of('a', 'other'))];
    await granted(ask(of('b', 'acme')));

    expect(held.map((each) => each.grant)).to.deep.equal([undefined, undefined]);
    for (const each of held) each.unsubscribe();
  });

  test('believe what a provider has left of a model', async () => {
    const of = kind.make({
      account: { requestsPerMinute: 60, burstRequests: 60 },
      models: { default: { requestsPerMinute: 60, burstRequests: 60 } },
    });
    const grant = await sent(ask(of('a')));
    grant.observe({ ...noHints, requests: { limit: 60, remaining: 0, resetMs: undefined, windowMs: 60_000 } });
    await soon();
    const held = ask(of('a'));
    await granted(ask(of('b')));
    grant.release(SUCCESS);

    expect(
      of('a')
        .snapshot()
        .layers.map(({ requests }) => (requests?.level ?? 0) > 50),
    ).to.deep.equal([true, false]);
    held.unsubscribe();
  });

  test('bound a tenant over all models, and no other one', async () => {
    const of = kind.make({ models: { default: {} }, tenants: { default: { requestsPerMinute: 1 } } });
    await granted(ask(of('a', 'acme')));
    const second = ask(of('b', 'acme'));
    await granted(ask(of('b', 'other')));
    await granted(ask(of('b')));

    expect(second.grant).to.be.undefined;
    second.unsubscribe();
  });

  test('bound those who wait, on all of them together', async () => {
    const of = kind.make({ maxWaiting: 1, models: { default: { requestsPerMinute: 1 } } });
    await granted(ask(of('a')));
    await granted(ask(of('b')));
    const waiting = ask(of('a'));
    await soon();
    const refused = ask(of('b'));
    await until(() => refused.error !== undefined);

    expect(refused.error).to.include({ code: 'queue_full', limit: 1 });
    waiting.unsubscribe();
  });
}

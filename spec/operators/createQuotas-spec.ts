import { expect } from 'chai';
import type { RateLimitHints } from '../../lib/core/hints.ts';
import { SUCCESS } from '../../lib/core/outcome.ts';
import type { Grant, QuotaPort } from '../../lib/core/ports.ts';
import { createQuotas } from '../../lib/operators/createQuotas.ts';
import type { QuotasOptions } from '../../lib/operators/createQuotas.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../lib/testing/virtualRuntime.ts';

const cost = { requests: 1, tokens: 0, explicit: true };

describe('createQuotas', () => {
  it('refuses options without any layer', () => {
    expect(() => createQuotas({ requestsPerMinute: 60 } as QuotasOptions)).to.throw(
      'account, models or tenants must be given, got undefined',
    );
    expect(() => createQuotas({ account: {} })).to.not.throw();
  });

  let runtime: VirtualRuntime;

  beforeEach(() => {
    runtime = virtualRuntime();
  });

  const ask = (quota: QuotaPort, tenant?: string, requests = 1) => {
    const asked: { grant?: Grant; atMs?: number; code?: string } = {};
    quota.acquire({ cost: { ...cost, requests }, tenant }).subscribe({
      next: (grant) => Object.assign(asked, { grant, atMs: runtime.clock.now() }),
      error: ({ code }: { code: string }) => (asked.code = code),
    });
    return asked;
  };
  const levels = (quota: QuotaPort) => quota.snapshot().layers.map(({ layer, requests }) => [layer, requests?.level]);

  it('shares the layer of the account between models, and gives each its own besides', () => {
    const quotas = createQuotas(
      {
        account: { requestsPerMinute: 600 },
        models: { a: { requestsPerMinute: 300 }, default: { requestsPerMinute: 120 } },
      },
      runtime,
    );
    ask(quotas.of('a'));
    ask(quotas.of('b'));

    expect(levels(quotas.of('a'))).to.deep.equal([
      ['account', 8],
      ['model', 4],
    ]);
    expect(levels(quotas.of('b'))).to.deep.equal([
      ['account', 8],
      ['model', 1],
    ]);
    expect(levels(quotas.of('c'))).to.deep.equal([
      ['account', 8],
      ['model', 2],
    ]);
  });

  it('returns the same quota for the same model', () => {
    const quotas = createQuotas({ account: { requestsPerMinute: 600 } }, runtime);

    expect(quotas.of('a')).to.equal(quotas.of('a'));
    expect(() => quotas.of('')).to.throw('model must be a string that is not empty');
  });

  it('takes names of models and tenants for nothing else', () => {
    const rates = { requestsPerMinute: 60 };
    const quotas = createQuotas({ account: rates, models: { a: rates }, tenants: { x: rates } }, runtime);

    expect(levels(quotas.of('constructor'))).to.deep.equal([['account', 1]]);
    expect(ask(quotas.of('__proto__'), 'toString').atMs).to.equal(0);
  });

  it('limits each tenant over all models', () => {
    const quotas = createQuotas(
      { tenants: { acme: { requestsPerMinute: 120 }, default: { requestsPerMinute: 60 } } },
      runtime,
    );

    expect([ask(quotas.of('a'), 'acme'), ask(quotas.of('b'), 'acme')].map(({ atMs }) => atMs)).to.deep.equal([0, 0]);
    expect(ask(quotas.of('a'), 'acme').grant).to.be.undefined;
    expect(ask(quotas.of('a'), 'x').atMs).to.equal(0);
    expect(ask(quotas.of('b'), 'x').grant).to.be.undefined;
    expect(ask(quotas.of('b'), 'y').atMs).to.equal(0);
    expect(ask(quotas.of('b')).atMs, 'a call without a tenant').to.equal(0);
    expect(quotas.of('a').snapshot().waiting).to.equal(1);
    expect(quotas.of('b').snapshot().waiting).to.equal(1);
  });

  it('does not let one tenant that waits for its own layer hold up another', () => {
    const quotas = createQuotas(
      { account: { requestsPerMinute: 6000 }, tenants: { default: { requestsPerMinute: 60 } } },
      runtime,
    );
    for (let n = 0; n < 20; n++) ask(quotas.of('a'), 'flood');

    expect(ask(quotas.of('a'), 'other').atMs).to.equal(0);
  });

  it('serves first who came first where the account is short, whatever the model', () => {
    const quotas = createQuotas({ account: { requestsPerMinute: 60 }, arrivalMarginMs: 0 }, runtime);
    ask(quotas.of('a'));
    const asked = ['a', 'b', 'a', 'c', 'b'].map((model) => ask(quotas.of(model)));
    runtime.run();

    expect(asked.map(({ atMs }) => atMs)).to.deep.equal([1000, 2000, 3000, 4000, 5000]);
  });

  it('holds only the model that a provider asked to wait for', () => {
    const quotas = createQuotas({ account: { requestsPerMinute: 600 }, cooldown: { jitter: 0 } }, runtime);
    const hints = { retryAfterMs: 2000 } as RateLimitHints;
    ask(quotas.of('m1')).grant?.observe(hints);
    const held = Array.from({ length: 5 }, () => ask(quotas.of('m1'), 'any'));

    expect(ask(quotas.of('m2')).atMs).to.equal(0);
    runtime.run(1999);
    expect(held.every(({ grant }) => grant === undefined)).to.be.true;
    runtime.run();
    expect(held.every(({ atMs }) => atMs! >= 2000)).to.be.true;
  });

  it('bounds those who wait for all models together', () => {
    const quotas = createQuotas({ account: { requestsPerMinute: 60 }, maxWaiting: 2 }, runtime);
    const asked = ['a', 'b', 'c', 'd'].map((model) => ask(quotas.of(model)));

    expect(asked.map(({ code }) => code)).to.deep.equal([undefined, undefined, undefined, 'queue_full']);
  });

  it('refuses a wrong rate at creation, naming whose', () => {
    for (const [options, name] of [
      [{ account: { requestsPerMinute: 0 } }, 'account.requestsPerMinute'],
      [{ models: { a: { requestsPerMinute: -1 } } }, 'models.a.requestsPerMinute'],
      [{ tenants: { default: { tokensPerMinute: NaN } } }, 'tenants.default.tokensPerMinute'],
      [{ maxWaitMs: NaN }, 'maxWaitMs'],
    ] as const) {
      expect(() => createQuotas(options, runtime))
        .to.throw(name)
        .with.property('code', 'invalid_option');
    }
  });

  it('forgets tenants of which nothing is left to remember, and only those', () => {
    let made = 0;
    const tenants = {
      get default() {
        made++;
        return { requestsPerMinute: 60, burstRequests: 5 };
      },
    };
    const quotas = createQuotas({ tenants }, runtime);
    const kept = ask(quotas.of('a'), 'kept', 5);
    const before = made;
    for (let n = 0; n < 5000; n++) {
      ask(quotas.of('a'), `tenant ${n}`).grant?.release(SUCCESS);
      runtime.advance(10);
    }
    kept.grant?.release(SUCCESS);

    expect(made - before).to.equal(5000);
    ask(quotas.of('a'), 'tenant 4999').grant?.release(SUCCESS);
    expect(made - before, 'the last one is still known').to.equal(5000);
    ask(quotas.of('a'), 'tenant 0').grant?.release(SUCCESS);
    expect(made - before, 'the first one was forgotten').to.equal(5001);
    ask(quotas.of('a'), 'kept');
    expect(made - before, 'one that held something is still known').to.equal(5001);
  });

  it('limits no call without a tenant as if it were one', () => {
    const { of } = createQuotas({ tenants: { default: { requestsPerMinute: 60 } } }, runtime);
    expect([ask(of('a')), ask(of('a'))].map(({ atMs }) => atMs)).to.deep.equal([0, 0]);
  });

  it('counts all who wait for one model, of one tenant too', () => {
    const { of } = createQuotas({ tenants: { default: { requestsPerMinute: 60 } } }, runtime);
    for (let n = 0; n < 3; n++) ask(of('a'), 'x');
    ask(of('b'), 'x');
    expect(of('a').snapshot().waiting).to.equal(2);
    expect(of('b').snapshot().waiting).to.equal(1);
  });

  it('holds a model for a hint that came by another way', () => {
    const { of } = createQuotas({ account: { requestsPerMinute: 600 }, cooldown: { jitter: 0 } }, runtime);
    of('a').observe({ retryAfterMs: 700 } as RateLimitHints);
    const asked = [ask(of('a')), ask(of('b'))];
    runtime.run();
    expect(asked.map(({ atMs }) => atMs)).to.deep.equal([700, 0]);
  });

  it('refuses a tenant without a name', () => {
    const quotas = createQuotas({ tenants: { default: { requestsPerMinute: 60 } } }, runtime);
    let message: string | undefined;
    quotas
      .of('a')
      .acquire({ cost, tenant: '' })
      .subscribe({ error: (error: Error) => (message = error.message) });
    expect(message).to.equal('tenant must be a string that is not empty, got an empty string');
  });

  describe('forgets of more than a thousand tenants', () => {
    let made: string[];
    const rates = (burstRequests: number) => ({ requestsPerMinute: 60_000, burstRequests });
    /** Says by whom a layer was made: a tenant that is forgotten gets a new one when it comes again. */
    const tenantsOf = (own: Record<string, number> = {}) =>
      new Proxy({} as Record<string, ReturnType<typeof rates>>, {
        getOwnPropertyDescriptor: () => ({ configurable: true, enumerable: true, value: rates(1) }),
        get: (_, name: string) => {
          made.push(name);
          return rates(own[name] ?? 1);
        },
      });
    const others = (quota: QuotaPort, from: number, to: number): void => {
      for (let n = from; n < to; n++) ask(quota, `t${n}`).grant?.release(SUCCESS);
    };
    const madeFor = (tenant: string): number => made.filter((name) => name === tenant).length;

    beforeEach(() => {
      made = [];
    });

    it('none that holds something of one model, or waits for one', () => {
      const quotas = createQuotas({ account: { requestsPerMinute: 60_000 }, tenants: tenantsOf({ x: 9 }) }, runtime);
      const [first, second] = [ask(quotas.of('a'), 'x'), ask(quotas.of('b'), 'x')];
      second.grant?.release(SUCCESS);
      quotas.of('c').observe({ retryAfterMs: 20_000 } as RateLimitHints);
      ask(quotas.of('c'), 'y');
      runtime.advance(10_000);
      others(quotas.of('a'), 0, 1100);
      expect(first.grant).to.not.be.undefined;
      expect(quotas.of('c').snapshot().waiting).to.equal(1);
      ask(quotas.of('a'), 'x');
      expect([madeFor('x'), madeFor('y'), madeFor('t0')]).to.deep.equal([1, 1, 1]);
    });

    it('looks for them again only when there are twice as many', () => {
      const quotas = createQuotas({ tenants: tenantsOf() }, runtime);
      const held = Array.from({ length: 1500 }, (_, n) => ask(quotas.of('a'), `held ${n}`));
      ask(quotas.of('a'), 'at rest').grant?.release(SUCCESS);
      runtime.advance(10_000);
      others(quotas.of('a'), 0, 10);
      ask(quotas.of('a'), 'at rest').grant?.release(SUCCESS);
      expect(madeFor('at rest')).to.equal(1);
      expect(held).to.have.length(1500);
    });

    it('none before there are a thousand again', () => {
      const quotas = createQuotas({ tenants: tenantsOf() }, runtime);
      others(quotas.of('a'), 0, 1024);
      runtime.advance(10_000);
      others(quotas.of('a'), 1024, 1025);
      runtime.advance(10_000);
      others(quotas.of('a'), 1025, 1030);
      others(quotas.of('a'), 1024, 1025);
      expect(madeFor('t1024')).to.equal(1);
      others(quotas.of('a'), 0, 1);
      expect(madeFor('t0')).to.equal(2);
    });
  });
});

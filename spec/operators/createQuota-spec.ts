import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { take } from 'rxjs';
import { DROPPED_UNSENT, SUCCESS } from '../../lib/core/outcome.ts';
import type { Cost, Grant, QuotaPort, QuotaRequest } from '../../lib/core/ports.ts';
import { createQuota } from '../../lib/operators/createQuota.ts';
import type { QuotaOptions } from '../../lib/operators/createQuota.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { hintsOf } from '../helpers/hintsOf.ts';

const one: Cost = { requests: 1, tokens: 0, explicit: true };
const noHints = hintsOf();

describe('createQuota', () => {
  let runtime: VirtualRuntime;

  beforeEach(() => {
    runtime = virtualRuntime();
  });

  /** What came of a request: the grant and when, or the code of the refusal. */
  const ask = (quota: QuotaPort, request: Partial<QuotaRequest> = {}) => {
    const asked: { grant?: Grant; atMs?: number; code?: string; completed?: true; unsubscribe(): void } = {
      unsubscribe: () => subscription.unsubscribe(),
    };
    const subscription = quota.acquire({ cost: one, ...request }).subscribe({
      next: (grant) => Object.assign(asked, { grant, atMs: runtime.clock.now() }),
      error: ({ code }: { code: string }) => (asked.code = code),
      complete: () => (asked.completed = true),
    });
    return asked;
  };
  const levels = (quota: QuotaPort) => quota.snapshot().layers.map(({ requests }) => requests?.level);

  it('takes nothing before it is subscribed to', () => {
    const quota = createQuota({ requestsPerMinute: 60 }, runtime);
    quota.acquire({ cost: one });

    expect(levels(quota)).to.deep.equal([1]);
  });

  it('emits one grant and completes', () => {
    const asked = ask(createQuota({ requestsPerMinute: 60 }, runtime), { cost: { ...one, tokens: 5 } });

    expect(asked.completed).to.be.true;
    expect(asked.grant).to.include({ waitedMs: 0, reservedTokens: 5 });
  });

  it('names a layer of its own rates account, and puts it before the others', () => {
    const quota = createQuota({ requestsPerMinute: 60, layers: { model: { tokensPerMinute: 600 } } }, runtime);

    expect(quota.snapshot()).to.deep.equal({
      waiting: 0,
      cooldownMs: 0,
      layers: [
        { layer: 'account', requests: { level: 1, burst: 1, perMinute: 60 }, tokens: undefined },
        { layer: 'model', requests: undefined, tokens: { level: 600, burst: 600, perMinute: 600 } },
      ],
    });
  });

  it('refuses options without any rate, unless it is told that there are no layers', () => {
    expect(() => createQuota({}, runtime)).to.throw('requestsPerMinute or tokensPerMinute must be finite and above 0');
    expect(ask(createQuota({ layers: {} }, runtime)).grant).to.not.be.undefined;
  });

  it('refuses wrong options, naming them', () => {
    for (const [options, name] of [
      [{ requestsPerMinute: 0 }, 'account.requestsPerMinute'],
      [{ layers: { model: { tokensPerMinute: NaN } } }, 'model.tokensPerMinute'],
      [{ requestsPerMinute: 60, burstRequests: -1 }, 'account.burstRequests'],
      [{ burstTokens: 60 }, 'account.tokensPerMinute'],
      [{ requestsPerMinute: 60, maxWaiting: 1.5 }, 'maxWaiting'],
      [{ requestsPerMinute: 60, reportsTo: 'model' }, 'reportsTo'],
      [{ requestsPerMinute: 60, cooldown: { jitter: -1 } }, 'cooldown.jitter'],
    ] as [QuotaOptions, string][]) {
      expect(() => createQuota(options, runtime))
        .to.throw(`${name} must be`)
        .with.property('code', 'invalid_option');
    }
  });

  it('emits what is wrong with a request', () => {
    const quota = createQuota({ requestsPerMinute: 60 }, runtime);

    expect(ask(quota, { cost: { ...one, tokens: NaN } }).code).to.equal('invalid_option');
    expect(ask(quota, { cost: { ...one, requests: -1 } }).code).to.equal('invalid_option');
    expect(ask(quota, { maxWaitMs: NaN }).code).to.equal('invalid_option');
    expect(ask(quota).completed).to.be.true;
  });

  it('serves those who wait with one timer, in order', () => {
    const quota = createQuota({ requestsPerMinute: 60, arrivalMarginMs: 0 }, runtime);
    const asked = Array.from({ length: 4 }, () => ask(quota));

    expect(quota.snapshot().waiting).to.equal(3);
    expect(runtime.pending).to.equal(1);
    runtime.run();
    expect(asked.map(({ atMs }) => atMs)).to.deep.equal([0, 1000, 2000, 3000]);
    expect(asked.map(({ grant }) => grant?.waitedMs)).to.deep.equal([0, 1000, 2000, 3000]);
    expect(runtime.pending).to.equal(0);
  });

  it('keeps the margin of arrival, as told', () => {
    const secondAtMs = (arrivalMarginMs: number | undefined): number | undefined => {
      const quota = createQuota({ requestsPerMinute: 600, burstRequests: 5, arrivalMarginMs }, runtime);
      ask(quota, { cost: { ...one, requests: 5 } });
      const before = runtime.clock.now();
      const asked = ask(quota);
      runtime.run();
      return asked.atMs! - before;
    };

    expect(secondAtMs(0)).to.equal(100);
    expect(secondAtMs(40)).to.be.within(140, 142);
    expect(secondAtMs(undefined)).to.be.within(200, 203);
  });

  it('says who must wait, where in line and how long at least', () => {
    const quota = createQuota({ requestsPerMinute: 60, arrivalMarginMs: 0 }, runtime);
    const told: unknown[] = [];
    const onQueued = (position: number, waitMs: number | undefined) => told.push([position, waitMs]);
    for (let n = 0; n < 3; n++) ask(quota, { onQueued });

    expect(told).to.deep.equal([
      [1, 1000],
      [2, 2000],
    ]);
  });

  it('lets go of a place on unsubscribe, and the next ones move up', () => {
    const quota = createQuota({ requestsPerMinute: 60, arrivalMarginMs: 0 }, runtime);
    ask(quota);
    const [gone, next] = [ask(quota), ask(quota)];
    gone.unsubscribe();

    expect(quota.snapshot().waiting).to.equal(1);
    runtime.run();
    expect(gone.grant).to.be.undefined;
    expect(next.atMs).to.equal(1000);
  });

  it('stops its timer when the last one stops waiting', () => {
    const quota = createQuota({ requestsPerMinute: 60 }, runtime);
    ask(quota);
    const waiting = ask(quota);
    expect(runtime.pending).to.equal(1);

    waiting.unsubscribe();
    expect(runtime.pending).to.equal(0);
  });

  it('passes on what is given back to those who wait, in the same tick', () => {
    const quota = createQuota({ requestsPerMinute: 60 }, runtime);
    const held = ask(quota);
    const waiting = ask(quota);
    expect(waiting.grant).to.be.undefined;

    held.grant?.release(DROPPED_UNSENT);
    expect(waiting.atMs).to.equal(0);
    expect(runtime.pending).to.equal(0);
  });

  it('gives back once, however often it is released', () => {
    const quota = createQuota({ requestsPerMinute: 60, burstRequests: 3 }, runtime);
    const [first] = [ask(quota), ask(quota)];
    for (let n = 0; n < 3; n++) first.grant?.release(DROPPED_UNSENT);

    expect(levels(quota)).to.deep.equal([2]);
  });

  it('grants those who ask from within a grant after those who wait', () => {
    const quota = createQuota({ requestsPerMinute: 60_000, burstRequests: 1, arrivalMarginMs: 0 }, runtime);
    const order: string[] = [];
    ask(quota);
    quota.acquire({ cost: one }).subscribe((grant) => {
      order.push('first');
      quota.acquire({ cost: one }).subscribe(() => order.push('from within'));
      grant.release(SUCCESS);
    });
    quota.acquire({ cost: one }).subscribe(() => order.push('second'));
    runtime.run();

    expect(order).to.deep.equal(['first', 'second', 'from within']);
  });

  it('takes 10,000 that release within the grant through without deepening the stack', () => {
    const quota = createQuota({ requestsPerMinute: 60, maxWaiting: Infinity, maxWaitMs: Infinity }, runtime);
    let served = 0;
    const held = ask(quota);
    for (let n = 0; n < 10_000; n++) {
      quota.acquire({ cost: one }).subscribe((grant) => {
        served++;
        grant.release(DROPPED_UNSENT);
      });
    }
    held.grant?.release(DROPPED_UNSENT);

    expect(served).to.equal(10_000);
    expect(runtime.pending).to.equal(0);
  });

  it('leaves a grant to whoever took one value and unsubscribed', () => {
    const quota = createQuota({ requestsPerMinute: 60, burstRequests: 5 }, runtime);
    let grant: Grant | undefined;
    quota
      .acquire({ cost: one })
      .pipe(take(1))
      .subscribe((granted) => (grant = granted));

    expect(levels(quota)).to.deep.equal([4]);
    grant?.release(DROPPED_UNSENT);
    expect(levels(quota)).to.deep.equal([5]);
  });

  it('serves the others though a listener throws', () => {
    const quota = createQuota({ requestsPerMinute: 60, burstRequests: 1 }, runtime);
    const boom = (): never => {
      throw new Error('listener');
    };
    const held = ask(quota, { onSettled: boom });
    const waiting = ask(quota);

    expect(() => held.grant?.release(DROPPED_UNSENT)).to.throw('listener');
    expect(waiting.grant).to.not.be.undefined;
    ask(quota, { onQueued: boom });
    const last = ask(quota);
    runtime.run();
    expect(last.grant).to.not.be.undefined;
  });

  it('applies another rate to those who wait', () => {
    const quota = createQuota({ requestsPerMinute: 60, arrivalMarginMs: 0 }, runtime);
    ask(quota);
    const waiting = ask(quota);
    quota.setRate('account', { requestsPerMinute: 600, burstRequests: 1 });

    runtime.run();
    expect(waiting.atMs).to.equal(100);
    expect(() => quota.setRate('model', { requestsPerMinute: 1 })).to.throw('layer must be one of account');
    expect(() => quota.setRate('account', { requestsPerMinute: 0 })).to.throw('account.requestsPerMinute');
    expect(() => quota.setRate('account', { tokensPerMinute: 5 })).to.throw('account.tokensPerMinute at creation');
  });

  it('corrects the most specific layer of the provider by reports, unless told which', () => {
    const layers = {
      account: { requestsPerMinute: 600 },
      model: { requestsPerMinute: 600 },
      tenant: { requestsPerMinute: 600 },
    };
    const report = { ...noHints, requests: { limit: 600, remaining: 3, resetMs: undefined, windowMs: 60_000 } };
    const after = (options: QuotaOptions) => {
      const quota = createQuota(options, runtime);
      quota.observe(report);
      return levels(quota);
    };

    expect(after({ layers })).to.deep.equal([10, 3, 10]);
    expect(after({ layers, reportsTo: 'account' })).to.deep.equal([3, 10, 10]);
  });

  it('holds everyone for a hint that came by another way', () => {
    const quota = createQuota({ requestsPerMinute: 60, cooldown: { jitter: 0 } }, runtime);
    quota.observe({ ...noHints, retryAfterMs: 700 });
    const asked = ask(quota);

    expect(quota.snapshot().cooldownMs).to.equal(700);
    runtime.run();
    expect(asked.atMs).to.equal(700);
  });

  it('refuses at once who cannot wait for the end of a pause', () => {
    const quota = createQuota({ requestsPerMinute: 60 }, runtime);
    ask(quota);
    const waiting = ask(quota, { deadlineAtMs: 5000 });
    quota.observe({ ...noHints, retryAfterMs: 7_139_000 });

    expect(waiting.code).to.equal('timeout_deadline');
    expect(ask(quota).code).to.equal('queue_timeout');
    expect(ask(quota, { deadlineAtMs: 100 }).code).to.equal('timeout_deadline');
    expect(runtime.pending).to.equal(0);
  });

  it('bounds the wait by what the request says, else by what the quota says', () => {
    const quota = createQuota({ requestsPerMinute: 6, maxWaitMs: 5000 }, runtime);
    ask(quota);

    expect(ask(quota).code).to.equal('queue_timeout');
    expect(ask(quota, { maxWaitMs: 60_000 }).code).to.be.undefined;
  });

  it('measures with the monotonic clock', () => {
    const quota = createQuota({ requestsPerMinute: 1800, burstRequests: 30 }, runtime);
    for (let n = 0; n < 3; n++) ask(quota);
    runtime.stepWall(-11_000);

    expect(ask(quota).atMs).to.equal(0);
    expect(levels(quota)).to.deep.equal([26]);
  });

  it('says what a reservation came to', () => {
    const quota = createQuota({ tokensPerMinute: 6000, settle: 'usage' }, runtime);
    const settled: unknown[] = [];
    const { grant } = ask(quota, {
      cost: { ...one, tokens: 800 },
      onSettled: (settlement) => settled.push(settlement),
    });
    grant?.dispatched();
    grant?.settle({
      inputTokens: 100,
      outputTokens: 200,
      totalTokens: 300,
      cachedInputTokens: undefined,
      reasoningTokens: undefined,
    });
    grant?.release(SUCCESS);
    grant?.release(SUCCESS);

    expect(settled).to.deep.equal([{ reservedTokens: 800, usedTokens: 300, refundedTokens: 500 }]);
  });

  it('keeps the process alive for one that waits, and no longer', async () => {
    const script = `
      import { createQuota } from ${JSON.stringify(new URL('../../lib/operators/createQuota.ts', import.meta.url).href)};
      const quota = createQuota({ requestsPerMinute: 600, burstRequests: 1 });
      const cost = { requests: 1, tokens: 0, explicit: true };
      quota.acquire({ cost }).subscribe();
      quota.acquire({ cost }).subscribe(({ waitedMs }) => console.log(waitedMs >= 50 ? 'done' : 'early'));
    `;
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script]);

    expect(stdout.trim()).to.equal('done');
  });
});

import { expect } from 'chai';
import { SluiceError } from '../../lib/core/errors.ts';
import type { SluiceErrorFields, ErrorCode } from '../../lib/core/errors.ts';
import type { Outcome } from '../../lib/core/outcome.ts';
import type { AdmissionOptions } from '../../lib/limits/AdmissionOptions.ts';
import { createAdmission } from '../../lib/operators/createAdmission.ts';
import type { LocalAdmission } from '../../lib/operators/createAdmission.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { callNow } from '../helpers/admissionLoad.ts';
import type { LoadCall } from '../helpers/admissionLoad.ts';

const failure = (code: ErrorCode, fields: SluiceErrorFields = {}): Outcome => ({
  kind: 'failure',
  error: new SluiceError(code, 'it failed', fields),
});
const known = (admission: LocalAdmission): string[] => Object.keys(admission.snapshot().models);

describe('createAdmission and models that are not listed', () => {
  let runtime: VirtualRuntime;
  let admission: LocalAdmission;
  function start(options: AdmissionOptions = {}): void {
    runtime = virtualRuntime();
    admission = createAdmission({ ...options, models: { listed: {}, ...options.models } }, runtime);
  }
  const call = (model: string, load: LoadCall = {}) => callNow(admission, runtime, { model, ...load });
  /** Looks at those that there are often enough. */
  function look(): void {
    for (let i = 0; i < 20; i++) call('listed');
  }

  it('remembers nothing of 20,000 that have come and gone, with quota, failures and rejections', function () {
    this.timeout(60_000);
    start({
      quota: { account: { requestsPerMinute: 600_000, burstRequests: 1000 } },
      models: { default: { quota: { requestsPerMinute: 60 } } },
    });
    let most = 0;
    for (let i = 0; i < 20_000; i++) {
      const [outcome] =
        i % 50 ? [] : i % 100 ? [failure('server_error')] : [failure('rate_limited', { retryAfterMs: 500 })];
      call(`m${i}`, { tenant: `t${i % 7}`, ...(outcome && { outcome }) });
      if (i % 20 === 0) runtime.advance(500);
      if (i % 200 === 0) most = Math.max(most, known(admission).length);
    }
    // Of one in fifty something is remembered for 30 s or for ten minutes, which is all the time that this takes.
    expect(most).to.be.within(100, 500);
    runtime.advance(700_000);
    for (let i = 0; i < 1500; i++) {
      call('listed');
      runtime.advance(1);
    }
    expect(known(admission)).to.deep.equal(['listed']);
    expect(admission.snapshot()).to.deep.include({ inFlight: 0, waiting: 0 });
    runtime.run();
    expect(runtime.pending).to.equal(0);
  });

  it('keeps those that are listed, also when they rest', () => {
    start({ models: { rests: {} } });
    runtime.advance(3_600_000);
    look();
    expect(known(admission)).to.include('rests');
  });

  it('forgets one that is listed no more', () => {
    start({ models: { rests: {} } });
    admission.reload({ models: { listed: {} } });
    look();
    expect(known(admission)).to.deep.equal(['listed']);
  });

  for (const [what, options, load, forMs] of [
    ['a bucket that is not full', { models: { default: { quota: { requestsPerMinute: 60 } } } }, {}, 1000],
    ['a call in flight', {}, { takesMs: 5000 }, 5000],
    ['a cooldown', {}, { outcome: failure('rate_limited', { retryAfterMs: 5000 }) }, 5000],
    ['an exhausted account', {}, { outcome: failure('quota_exhausted', { retryAfterMs: 5000 }) }, 5000],
    [
      'an open breaker',
      { models: { default: { breaker: { consecutiveFailures: 1, openMs: 5000 } } } },
      { outcome: failure('server_error') },
      5000,
    ],
    ['a failure in the window of its breaker', {}, { outcome: failure('server_error') }, 27_000],
    [
      'a limit that has been cut',
      { models: { default: { concurrency: {} } } },
      { outcome: failure('overloaded') },
      500_000,
    ],
  ] as const) {
    it(`remembers ${what} as long as it matters`, () => {
      start(options as AdmissionOptions);
      call('m', load as LoadCall);
      runtime.advance(forMs - 10);
      look();
      expect(known(admission)).to.include('m');
      runtime.advance(700_000);
      look();
      expect(known(admission)).to.deep.equal(['listed']);
    });
  }

  it('remembers one for which someone waits', () => {
    start({ maxInFlight: 1, quota: { account: { maxWaitMs: Infinity } } });
    const running = call('listed', { takesMs: Infinity });
    const waiting = call('m');
    for (let i = 0; i < 50; i++) call('n').subscription.unsubscribe();
    running.admitted?.release({ kind: 'success' });
    expect(waiting.startedAtMs).to.equal(0);
    runtime.advance(1000);
    look();
    expect(known(admission)).to.deep.equal(['listed']);
  });

  it('gives one that comes back a new start, no better than it had', () => {
    start({ models: { default: { quota: { requestsPerMinute: 60, burstRequests: 2 } } } });
    for (let round = 0; round < 3; round++) {
      expect([call('m'), call('m')].map(({ startedAtMs }) => startedAtMs)).to.deep.equal(
        Array(2).fill(runtime.clock.now()),
      );
      expect(call('m').startedAtMs).to.equal(undefined);
      runtime.advance(4000);
      look();
      expect(known(admission)).to.deep.equal(['listed']);
    }
  });
});

import { expect } from 'chai';
import { parsePolicy } from '../../lib/policy/parsePolicy.ts';
import type { ModelInput, PolicyInput } from '../../lib/policy/PolicyInput.ts';
import { policyWarnings } from '../../lib/policy/policyWarnings.ts';
import { PRESET_NAMES } from '../../lib/policy/presets.ts';

const told = (input: PolicyInput): readonly string[] =>
  policyWarnings(parsePolicy(input)).map(({ message }) => message);
const model = (settings: ModelInput, more: PolicyInput = {}): PolicyInput => ({
  ...more,
  models: { default: settings },
});

describe('policyWarnings', () => {
  it('have nothing to say of the defaults and the presets', () => {
    expect(told({})).to.deep.equal([]);
    for (const preset of PRESET_NAMES) expect(told({ preset }), preset).to.deep.equal([]);
  });

  /** A policy that is warned of, the warning, and the smallest change after which it is not. */
  const cases: readonly (readonly [PolicyInput, string, PolicyInput])[] = [
    [
      model({ retry: { baseMs: 500 } }, { deadlineMs: 500 }),
      'models.default.retry.baseMs: the first wait, of up to 500 ms, does not fit into the deadline of 500 ms',
      model({ retry: { baseMs: 500, attempts: 1 } }, { deadlineMs: 500 }),
    ],
    [
      // 0.5 * (250 + 500 + 1,000 + 2,000) ms.
      { deadlineMs: 1875 },
      'models.default.retry.attempts: the waits alone, about 1.9 s, do not fit into the deadline of 1.9 s: the last ones are never made',
      { deadlineMs: 1876 },
    ],
    [
      model({ retry: { jitter: 'equal' } }, { deadlineMs: 2812 }),
      'models.default.retry.attempts: the waits alone, about 2.8 s, do not fit into the deadline of 2.8 s: the last ones are never made',
      model({ retry: { jitter: 'equal' } }, { deadlineMs: 2813 }),
    ],
    [
      model({ retry: { attempts: 100, capMs: 1000 } }, { deadlineMs: 48_000 }),
      'models.default.retry.attempts: the waits alone, about 48.9 s, do not fit into the deadline of 48 s: the last ones are never made',
      model({ retry: { attempts: 90, capMs: 1000 } }, { deadlineMs: 48_000 }),
    ],
    [
      model({ retry: { baseMs: 900, capMs: 300 } }),
      'models.default.retry.baseMs: above capMs: every wait is up to 300 ms',
      model({ retry: { baseMs: 300, capMs: 300 } }),
    ],
    [
      model({ retry: { jitter: 'none' } }),
      'models.default.retry.jitter: callers that failed together come back together',
      model({ retry: { jitter: 'decorrelated' } }),
    ],
    [
      model({ timeouts: { firstContentMs: 60_000 } }),
      'models.default.timeouts.firstContentMs: a silent provider uses up the deadline of 60 s: no retry and no fallback fits',
      model({ timeouts: { firstContentMs: 59_999 } }),
    ],
    [
      model({ concurrency: { min: 8 } }, { maxInFlight: 7 }),
      'models.default.concurrency.min: never met, since maxInFlight is 7',
      model({ concurrency: { min: 8 } }, { maxInFlight: 8 }),
    ],
    [
      model({ quota: { requestsPerMinute: 601 } }, { quota: { account: { requestsPerMinute: 600 } } }),
      'models.default.quota.requestsPerMinute: never met, since the account has 600; a client with another account is to stand in quota.clients',
      model({ quota: { requestsPerMinute: 600 } }, { quota: { account: { requestsPerMinute: 600 } } }),
    ],
    [
      model({ deployments: [{ quota: { tokensPerMinute: 9 } }] }, { quota: { account: { tokensPerMinute: 8 } } }),
      'models.default.deployments[0].quota.tokensPerMinute: never met, since the account has 8; a client with another account is to stand in quota.clients',
      model(
        { deployments: [{ quota: { tokensPerMinute: 9 } }] },
        { quota: { account: { tokensPerMinute: 8 }, clients: { main: {} } } },
      ),
    ],
    [
      { quota: { account: { requestsPerMinute: 19 } } },
      'models.default.breaker.minCalls: at 19 requests a minute there are never 10 calls in 30 s: an error ratio of 25 % opens nothing',
      { quota: { account: { requestsPerMinute: 20 } } },
    ],
    [
      { quota: { account: { refundOn: { rate_limited: 'tokens' } } } },
      'quota.account.refundOn.rate_limited: providers count what they refuse: what comes back is not there',
      { quota: { account: { refundOn: { rate_limited: 'none' } } } },
    ],
    [
      { quota: { clients: { x: { refundOn: { rate_limited: 'all' } } } } },
      'quota.clients.x.refundOn.rate_limited: providers count what they refuse: what comes back is not there',
      { quota: { clients: { x: {} } } },
    ],
    [
      { retryBudget: { ratio: 0, minPerSecond: 0 } },
      'retryBudget: leaves nothing to retries: no attempt after the first is ever made',
      { retryBudget: { ratio: 0 } },
    ],
    [
      { tenants: { acme: { reservedInFlight: 2 } } },
      'maxInFlight: without it no slots can be kept for a tenant: reservedInFlight has no effect',
      { tenants: { acme: { reservedInFlight: 2 } }, maxInFlight: 9 },
    ],
    [
      { tenants: { a: { reservedInFlight: 5 }, b: { reservedInFlight: 4 } }, maxInFlight: 9 },
      'tenants: all of maxInFlight is reserved: other tenants get only what these lend',
      { tenants: { a: { reservedInFlight: 5 }, b: { reservedInFlight: 3 } }, maxInFlight: 9 },
    ],
    [
      { tenants: { a: { maxInFlight: 10 } }, maxInFlight: 9 },
      'tenants.a.maxInFlight: never met, since maxInFlight is 9',
      { tenants: { a: { maxInFlight: 9 } }, maxInFlight: 9 },
    ],
    [
      { priorities: { batch: { maxInFlight: 10 } }, maxInFlight: 9 },
      'priorities.batch.maxInFlight: never met, since maxInFlight is 9',
      { priorities: { batch: { maxInFlight: 9 } }, maxInFlight: 9 },
    ],
    [
      { spend: { perTenantPerDay: { acme: 5 } } },
      'models.default.price: not given, so that its calls count nothing towards spend.perTenantPerDay',
      { spend: { perTenantPerDay: { acme: null } } },
    ],
  ];
  for (const [input, message, better] of cases) {
    it(`say: ${message.slice(0, 100)}`, () => {
      expect(told(input)).to.deep.equal([message]);
      expect(told(better)).to.deep.equal([]);
    });
  }

  it('tell of what comes from default once', () => {
    const models = { default: { retry: { jitter: 'none' as const } }, a: {}, b: { retry: { attempts: 2 } } };
    const at = policyWarnings(parsePolicy({ models })).map((warning) => warning.at);
    expect(at).to.have.members(['models.default.retry.jitter', 'models.b.retry.jitter']);
  });
});

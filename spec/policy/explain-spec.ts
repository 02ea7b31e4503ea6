import { expect } from 'chai';
import fc from 'fast-check';
import { explain } from '../../lib/policy/explain.ts';
import { loadPolicy } from '../../lib/policy/loadPolicy.ts';
import { parsePolicy } from '../../lib/policy/parsePolicy.ts';
import type { ModelInput, PolicyInput } from '../../lib/policy/PolicyInput.ts';
import { policyInputs } from './policyInputs.ts';

const said = (input: PolicyInput): string => explain(parsePolicy(input));
const ofModel = (settings: ModelInput): string => said({ models: { default: settings } });

describe('explain', () => {
  it('says the steps in order, each limit in words, and what cannot work well', () => {
    expect(explain(loadPolicy('spec/fixtures/policies/every-setting.yaml', { env: {} }))).to.equal(
      `A call passes, from the outside in:
  1. deadline     its first content comes within 60 s, waits included, or it fails
  2. conversation one turn at a time in each; at most 20 wait, each up to 60 s
  3. fallback     a model that fails before any content hands over to the next one
  4. retry        what failed is tried again, if deadline and retry budget have room for it
  5. admission    breaker, pauses, quotas and a slot are granted together, in the tick of sending
  6. attempt      limits on each stage, and then the provider

All calls together:
  at most 200 in flight
  at most 10,000 in line, each for up to 30 s
  the most urgent first: interactive and batch (at most 15 in flight); one that has waited 10 s gets one turn in eight
  retries add up to 20 % to the traffic of the last 10 s, or 1 retry a second

The account:
  at most 60 requests a minute, bursts of 8; after a burst, one every 1 s
  at most 1,000,000 tokens a minute, bursts of 1,000,000; a 12,000-token request waits up to 720 ms once they are spent
  the provider counts what was reserved: tokens that were not used do not come back

Model gpt-5.5:
  served by the least loaded of 2:
  - client main
    at most 48 requests a minute, bursts of 6; after a burst, one every 1.3 s
  - client azure, as gpt-55-eu
    at most 300 requests a minute, bursts of 5; after a burst, one every 200 ms
    at most 400,000 tokens a minute, bursts of 400,000; a 12,000-token request waits up to 1.8 s once they are spent
  up to 5 attempts; waits of 250 ms, doubling up to 8 s, each drawn at random below that; a wait that the provider asks for is slept out up to 60 s
  breaker: after 5 failures in a row or 25 % failures among 10 calls or more in 30 s nothing is sent for 15 s; then 10 % of the traffic probes
  at first 16 attempts in flight, then from 4 to 64, by what the provider bears
  after context_too_long: gpt-5.5-long
  when it fails otherwise: deepseek-v3.2
  sent, it is answered within 10 s, with content within 30 s, and goes on within 30 s each time
  a stream that breaks off ends the call with what has come
  the request leaves out temperature, renames max_tokens to max_completion_tokens
  a million tokens cost 2.5 in and 10 out

Other models:
  served by client main
  up to 5 attempts; waits of 250 ms, doubling up to 8 s, each drawn at random below that; a wait that the provider asks for is slept out up to 60 s
  breaker: after 5 failures in a row or 25 % failures among 10 calls or more in 30 s nothing is sent for 15 s; then 10 % of the traffic probes
  no limit on attempts in flight
  sent, it is answered within 10 s, with content within 30 s or half of the time left, whichever is less, and goes on within 30 s each time
  a stream that breaks off ends the call with what has come

Tenants:
  acme: 20 slots kept for it; no ceiling of its own; at most 1,500 requests a minute, bursts of 120; after a burst, one every 40 ms; spends at most 5 a day
  every other: at most 12 in flight; spends at most 5 a day

Warnings:
  models.gpt-5.5.deployments[1].quota.requestsPerMinute: never met, since the account has 60; a client with another account is to stand in quota.clients
  models.default.price: not given, so that its calls count nothing towards spend.perTenantPerDay`,
    );
  });

  const parts: readonly (readonly [PolicyInput, string])[] = [
    [{ deadlineMs: null }, '1. deadline     none: it may take any time'],
    [{ totalMs: 90_000 }, 'or it fails; all of it within 90 s'],
    [{ conversations: { maxWaiting: null, maxWaitMs: null } }, 'one turn at a time in each; at most any number wait\n'],
    [{ conversations: { header: 'x-chat' } }, 'the id is sent upstream as x-chat'],
    [{}, 'any number in flight, up to what each model bears'],
    [{ quota: { account: { maxWaiting: 5, maxWaitMs: null } } }, 'at most 5 in line\n'],
    [{ maxAttempts: 7 }, '7 attempts of a call at most, over all models'],
    [{ retryBudget: { ratio: 0.05, minPerSecond: 0 } }, 'retries add up to 5 % to the traffic of the last 10 s\n'],
    [{}, 'no rate is given: it is found by what the provider says and refuses'],
    [{ quota: { account: { settle: 'usage' } } }, 'tokens that were reserved and not used come back'],
    [
      { quota: { clients: { x: { requestsPerMinute: 1 } } } },
      'client x has an account of its own: at most 1 request a minute',
    ],
    [{ quota: { account: { tokensPerMinute: 600 } } }, 'a 600-token request waits up to 60 s once they are spent'],
    [{ tenants: { acme: { weight: 2.5 } } }, 'acme: no ceiling of its own; 2.5 times the usual share of what is short'],
    [{ spend: { perTenantPerDay: { acme: 9 } } }, 'acme: no ceiling of its own; spends at most 9 a day'],
    [{ models: { m: {} } }, 'Model m:'],
    [{}, 'Every model:'],
  ];
  for (const [input, text] of parts) {
    it(`says "${text.trim()}" of ${JSON.stringify(input)}`, () => expect(said(input)).to.include(text));
  }

  const modelParts: readonly (readonly [ModelInput, string])[] = [
    [{ retry: { attempts: 1 } }, 'one attempt: nothing is tried again'],
    [
      { retry: { jitter: 'equal', maxHintMs: null } },
      'from half of that up; a wait that the provider asks for is slept out however long',
    ],
    [{ retry: { jitter: 'decorrelated' } }, 'each drawn at random from the one before'],
    [{ retry: { jitter: 'none' } }, 'not drawn at random'],
    [
      { breaker: { errorRatio: null, consecutiveFailures: 1, countRateLimited: true } },
      'breaker: after 1 failure in a row nothing',
    ],
    [{ breaker: { countRateLimited: true } }, 'a 429 counts as a failure'],
    [{ breaker: { errorRatio: null, consecutiveFailures: null } }, 'no breaker: it is asked however often it fails'],
    [{ concurrency: { limit: 1 } }, 'at most 1 attempt in flight'],
    [{ concurrency: { limit: null } }, 'no limit on attempts in flight'],
    [{}, 'at first 16 attempts in flight, then from 4 to 64'],
    [{ fallback: ['a', 'b'] }, 'when it fails: a, then b'],
    [{ fallbackOn: { overloaded: [] } }, 'after overloaded: no other model'],
    [{ maxPromptTokens: 8000 }, 'as a fallback only for prompts of up to 8,000 tokens'],
    [{ timeouts: { headersMs: null } }, 'it is answered at any time'],
    [{ midStream: 'restart' }, 'a stream that breaks off is started over, for consumers that can take that'],
    [{ midStream: 'continue', canContinue: true }, 'is continued; where that cannot be it is started over'],
    [{ params: { set: { top_p: 1 } }, includeUsage: false }, 'the request sets top_p, does not ask for usage'],
    [{ deployments: [{ breaker: { openMs: 1000 } }, {}] }, '    breaker: after 5 failures'],
    [
      { deployments: [{ concurrency: { limit: 3 } }, {}], quota: { requestsPerMinute: 60 } },
      '    at most 3 attempts in flight',
    ],
    [{ deployments: [{}, {}], quota: { requestsPerMinute: 60 } }, 'all of them together: at most 60 requests a minute'],
  ];
  for (const [settings, text] of modelParts) {
    it(`says "${text.trim()}" of ${JSON.stringify(settings)}`, () => expect(ofModel(settings)).to.include(text));
  }

  it('shows no keys and no addresses', () => {
    const text = said({
      clients: { main: { apiKey: 'sk-secret', baseURL: 'http://secret', headers: { a: 'secret' } } },
      store: { url: 'redis://secret' },
      gateway: { keys: [{ hash: 'a'.repeat(64), tenant: 'acme' }] },
    });
    expect(text).to.not.include('secret');
  });

  it('has words for every policy, without a number that is none', () => {
    fc.assert(
      fc.property(policyInputs, (input) => {
        expect(said(input)).to.not.match(/NaN|Infinity|∞|undefined|null|\[object/);
      }),
      { numRuns: 50 },
    );
  });

  it('says how the line moves, where that was chosen', () => {
    expect(said({})).to.include('; one that has waited 10 s gets one turn in eight');
    expect(said({ priorities: { ageingMs: 3000 } })).to.include('; one that has waited 3 s gets one turn in eight');
    for (const priorities of [{ ageingMs: null }, { order: ['only'] }]) {
      expect(said({ priorities })).to.not.include('one turn in eight');
    }
    expect(said({})).to.not.include('pass a large one');
    expect(said({ quota: { account: { passShare: 0.25 } } })).to.include('up to 25 % of what it needs');
    expect(said({ quota: { account: { passShare: 0 } } })).to.include('never pass a large one');
    expect(said({})).to.not.include('run out');
    expect(said({ quota: { account: { exhaustedMs: 5000 } } })).to.include('has run out is left alone for 5 s');
  });
});

import { expect } from 'chai';
import fc from 'fast-check';
import { isSluiceError } from '../../lib/core/errors.ts';
import { STAGE_TIMER_DEFAULTS } from '../../lib/core/stageTimeouts.ts';
import { Aimd, AIMD_DEFAULTS } from '../../lib/limits/Aimd.ts';
import type { AimdOptions } from '../../lib/limits/Aimd.ts';
import { CIRCUIT_BREAKER_DEFAULTS } from '../../lib/limits/breakerRules.ts';
import { CONVERSATION_LANES_DEFAULTS } from '../../lib/limits/ConversationLanes.ts';
import { COOLDOWN_DEFAULTS } from '../../lib/limits/Cooldown.ts';
import { QUOTA_DEFAULTS } from '../../lib/limits/QuotaOptions.ts';
import { QuotaLayer } from '../../lib/limits/QuotaLayer.ts';
import { RETRY_BUDGET_DEFAULTS } from '../../lib/limits/RetryBudget.ts';
import { RETRY_RULE_DEFAULTS } from '../../lib/limits/retryRules.ts';
import { modelPolicy, tenantPolicy } from '../../lib/policy/modelPolicy.ts';
import { parsePolicy, policyProblems } from '../../lib/policy/parsePolicy.ts';
import type { Policy } from '../../lib/policy/Policy.ts';
import type { ModelInput, PolicyInput, PresetName, QuotaInput, RetryClass } from '../../lib/policy/PolicyInput.ts';
import { PRESET_NAMES, presets } from '../../lib/policy/presets.ts';
import { RETRY_CLASS_NAMES } from '../../lib/policy/retryClasses.ts';
import { policyInputs } from './policyInputs.ts';

const parsed = (input: PolicyInput): Policy => parsePolicy(input);
const models = (given: Record<string, ModelInput>): Policy['models'] => parsed({ models: given }).models;

function thrownBy(value: unknown): unknown {
  try {
    parsePolicy(value);
  } catch (error) {
    return error;
  }
  return undefined;
}

describe('parsePolicy', () => {
  it('fills in the defaults of the machines where nothing is said', () => {
    const policy = parsed({});
    expect(policy).to.deep.equal(parsePolicy(undefined)).and.deep.equal(parsePolicy(null));
    const { default: model } = policy.models;
    const { attempts, baseMs, capMs, jitter, maxHintMs, maxAttempts } = RETRY_RULE_DEFAULTS;
    expect(model.retry).to.deep.equal({ attempts, baseMs, capMs, jitter, maxHintMs });
    expect(model.breaker).to.deep.equal(CIRCUIT_BREAKER_DEFAULTS);
    expect(model.concurrency).to.deep.equal(AIMD_DEFAULTS);
    const { headersMs, idleMs, tailMs } = STAGE_TIMER_DEFAULTS;
    expect(model.timeouts).to.deep.equal({ headersMs, idleMs, tailMs });
    expect(model).to.include({ client: 'main', midStream: 'fail', canContinue: false, includeUsage: true });
    expect(model).to.include({ maxPromptTokens: Infinity }).and.not.have.property('price');
    expect(model.deployments).to.have.length(1);
    expect(model.deployments[0]).to.include({ client: 'main' }).and.not.have.property('model');
    expect(policy).to.include({ deadlineMs: 60_000, totalMs: Infinity, maxInFlight: Infinity, maxAttempts });
    const { settle, maxWaiting, maxWaitMs, arrivalMarginMs } = QUOTA_DEFAULTS;
    expect(policy.quota.account).to.include({ settle, maxWaiting, maxWaitMs, arrivalMarginMs });
    expect(policy.quota.account.cooldown).to.deep.equal(COOLDOWN_DEFAULTS);
    expect(policy.quota.account).to.not.have.any.keys('requestsPerMinute', 'burstRequests', 'tokensPerMinute');
    expect(policy.tenants).to.deep.equal({ default: { maxInFlight: Infinity, reservedInFlight: 0, weight: 1 } });
    expect(policy.priorities).to.deep.equal({
      order: ['interactive', 'batch'],
      levels: { interactive: { maxInFlight: Infinity }, batch: { maxInFlight: Infinity } },
      ageingMs: 10_000,
    });
    expect(policy.quota.account).to.include({ passShare: 0.5, exhaustedMs: 60_000 });
    expect(policy.retryBudget).to.deep.equal(RETRY_BUDGET_DEFAULTS);
    expect(policy.conversations).to.deep.equal({ ...CONVERSATION_LANES_DEFAULTS, header: null });
    expect(policy.spend.perTenantPerDay).to.deep.equal({ default: Infinity });
    expect(policy.store).to.deep.equal({});
    expect(policy.telemetry).to.deep.equal({ captureContent: false });
    expect(policy.gateway.keys).to.deep.equal([]);
  });

  it('freezes what it returns, and leaves what it was given alone', () => {
    const given = { models: { a: { fallback: ['b'] }, b: {} } };
    const policy = parsed(given);
    expect(() => (policy.models['a']?.fallback as string[]).push('c')).to.throw(TypeError);
    given.models.a.fallback.push('c');
    expect(policy.models['a']?.fallback).to.deep.equal(['b']);
  });

  it('reads null and Infinity as no bound', () => {
    for (const off of [null, Infinity]) {
      const policy = parsed({
        deadlineMs: off,
        quota: { account: { maxWaitMs: off, maxWaiting: off } },
        models: {
          default: {
            breaker: { errorRatio: off, consecutiveFailures: off },
            timeouts: { headersMs: off, firstContentMs: off, idleMs: off, tailMs: off, responseMs: off },
            concurrency: { maxOverMeasured: off },
            retry: { maxHintMs: off },
          },
        },
        tenants: { default: { maxInFlight: off } },
        conversations: { maxWaiting: off, maxWaitMs: off },
        spend: { perTenantPerDay: { acme: off } },
      });
      const { default: model } = policy.models;
      expect(policy.deadlineMs).to.equal(Infinity);
      expect(policy.quota.account).to.include({ maxWaitMs: Infinity, maxWaiting: Infinity });
      expect(model.breaker).to.include({ errorRatio: Infinity, consecutiveFailures: Infinity });
      expect(Object.values(model.timeouts)).to.deep.equal([Infinity, Infinity, Infinity, Infinity, Infinity]);
      expect(model.concurrency).to.include({ maxOverMeasured: Infinity });
      expect(model.retry.maxHintMs).to.equal(Infinity);
      expect(policy.conversations).to.include({ maxWaiting: Infinity, maxWaitMs: Infinity });
      expect(policy.spend.perTenantPerDay['acme']).to.equal(Infinity);
    }
  });

  it('treats undefined as left out', () => {
    const given = { deadlineMs: undefined, models: { a: { retry: { attempts: undefined } } } };
    expect(parsePolicy(given)).to.deep.equal(parsePolicy({ models: { a: {} } }));
  });

  describe('models', () => {
    it('are set over default, key by key, with lists replaced', () => {
      const { a } = models({
        default: {
          retry: { attempts: 7, capMs: 900 },
          fallback: ['b'],
          params: { omit: ['x'], rename: { p: 'q' }, set: { s: 1 } },
          timeouts: { idleMs: 5 },
        },
        a: { retry: { attempts: 2 }, fallback: ['c', 'd'], params: { omit: ['y'], set: { t: 2 } } },
      });
      expect(a?.retry).to.include({ attempts: 2, capMs: 900 });
      expect(a?.fallback).to.deep.equal(['c', 'd']);
      expect(a?.params).to.deep.equal({ omit: ['y'], rename: { p: 'q' }, set: { s: 1, t: 2 } });
      expect(a?.timeouts.idleMs).to.equal(5);
    });

    it('take a burst with the rate that it was chosen for', () => {
      const { a, b } = models({
        default: { quota: { requestsPerMinute: 600, burstRequests: 100, tokensPerMinute: 6000, burstTokens: 500 } },
        a: { quota: { requestsPerMinute: 120 } },
        b: { quota: { tokensPerMinute: 12_000 } },
      });
      expect(a?.quota).to.deep.equal({
        requestsPerMinute: 120,
        burstRequests: 2,
        tokensPerMinute: 6000,
        burstTokens: 500,
      });
      expect(b?.quota).to.deep.include({ burstRequests: 100, burstTokens: 12_000 });
    });

    it('are not served where the others are once they name a client', () => {
      const shared = { deployments: [{ client: 'x' }, { client: 'y' }] };
      const { a, b } = models({ default: shared, a: {}, b: { client: 'z' } });
      expect(a?.deployments.map(({ client }) => client)).to.deep.equal(['x', 'y']);
      expect(b?.deployments.map(({ client }) => client)).to.deep.equal(['z']);
    });

    it('replace an adaptive limit by one that stands, and the reverse', () => {
      const fixed = models({ default: { concurrency: { max: 9 } }, a: { concurrency: { limit: 3 } } });
      expect(fixed['a']?.concurrency).to.deep.equal({ limit: 3 });
      const adaptive = models({ default: { concurrency: { limit: 3 } }, a: { concurrency: { max: 20 } }, b: {} });
      expect(adaptive['a']?.concurrency).to.deep.equal({ ...AIMD_DEFAULTS, max: 20 });
      expect(adaptive['b']?.concurrency).to.deep.equal({ limit: 3 });
    });

    it('have no limit by default where a rate is known, and an adaptive one elsewhere', () => {
      const rate = { requestsPerMinute: 60 };
      const of = (model: ModelInput, quota: QuotaInput = {}): unknown =>
        parsePolicy({ quota, models: { default: model } }).models.default.deployments[0]?.concurrency;
      const known: [ModelInput, QuotaInput?][] = [
        [{ quota: rate }],
        [{ quota: { tokensPerMinute: 1000 } }],
        [{ deployments: [{ quota: rate }] }],
        [{}, { account: rate }],
        [{ client: 'x' }, { clients: { x: rate } }],
      ];
      for (const [model, quota] of known) expect(of(model, quota)).to.deep.equal({ limit: Infinity });
      expect(of({})).to.deep.equal(AIMD_DEFAULTS);
      expect(of({ client: 'x' }, { clients: { y: rate } })).to.deep.equal(AIMD_DEFAULTS);
      expect(of({ quota: rate, concurrency: { max: 64 } })).to.deep.equal(AIMD_DEFAULTS);
      expect(of({ concurrency: { limit: null } })).to.deep.equal({ limit: Infinity });
    });

    it('take of shared fallbacks those that stand after them', () => {
      const policy = parsed({
        models: { default: { fallback: ['b', 'c', 'd'], fallbackOn: { overloaded: ['c', 'e'] } }, b: {}, c: {} },
      });
      expect(policy.models['b']?.fallback).to.deep.equal(['c', 'd']);
      expect(policy.models['c']?.fallback).to.deep.equal(['d']);
      expect(policy.models['c']?.fallbackOn).to.deep.equal({ overloaded: ['e'] });
      expect(modelPolicy(policy, 'd').fallback).to.deep.equal([]);
      expect(modelPolicy(policy, 'e')).to.deep.include({
        fallback: ['b', 'c', 'd'],
        fallbackOn: { overloaded: [] },
      });
      expect(modelPolicy(policy, 'other')).to.equal(policy.models.default);
    });

    it('are looked up by their own names only', () => {
      const policy = parsed({ tenants: { acme: { weight: 2 } } });
      for (const name of ['toString', '__proto__', 'constructor']) {
        expect(modelPolicy(policy, name)).to.equal(policy.models.default);
        expect(tenantPolicy(policy, name)).to.equal(policy.tenants.default);
      }
      expect(tenantPolicy(policy, 'acme').weight).to.equal(2);
    });

    it('fill in what depends on other settings', () => {
      const { a } = models({
        a: { breaker: { openMs: 300_000 }, price: { inputPerMTok: 3, outputPerMTok: 9 } },
      });
      expect(a?.breaker.openCapMs).to.equal(300_000);
      expect(a?.price?.cachedInputPerMTok).to.equal(3);
    });
  });

  describe('deployments', () => {
    it('set their breaker and limit over those of the model', () => {
      const { a } = models({
        a: {
          breaker: { openMs: 5000, minCalls: 3 },
          concurrency: { max: 8 },
          deployments: [{ breaker: { openMs: 7000 } }, { concurrency: { limit: 2 } }],
        },
      });
      const [first, second] = a?.deployments ?? [];
      expect(first?.breaker).to.include({ openMs: 7000, minCalls: 3 });
      expect(first?.concurrency).to.include({ max: 8 });
      expect(second?.breaker).to.include({ openMs: 5000 });
      expect(second?.concurrency).to.deep.equal({ limit: 2 });
    });

    it('take the rules of a quota from the nearest that has them', () => {
      const policy = parsed({
        quota: {
          account: { settle: 'usage', arrivalMarginMs: 1, refundOn: { timeout: 'all' }, cooldown: { jitter: 0 } },
          clients: { other: { arrivalMarginMs: 2 } },
        },
        models: {
          a: {
            quota: { refundOn: { conflict: 'tokens' } },
            deployments: [{ client: 'other' }, { quota: { settle: 'reserved' } }],
          },
        },
      });
      const [other, main] = policy.models['a']?.deployments ?? [];
      expect(other?.quota).to.include({ settle: 'usage', arrivalMarginMs: 2 });
      expect(main?.quota).to.include({ settle: 'reserved', arrivalMarginMs: 1 });
      expect(main?.quota.refundOn).to.include({
        timeout: 'all',
        conflict: 'tokens',
        unsent: 'all',
      });
      expect(main?.quota.cooldown).to.deep.equal({ ...COOLDOWN_DEFAULTS, jitter: 0 });
    });
  });

  it('does not set tenants over default, which is for those not listed', () => {
    const { tenants } = parsed({
      tenants: { default: { maxInFlight: 5, weight: 3 }, acme: { reservedInFlight: 9 } },
      maxInFlight: 20,
    });
    expect(tenants['acme']).to.deep.equal({ maxInFlight: Infinity, reservedInFlight: 9, weight: 1 });
  });

  it('asks at the first client where none is called main', () => {
    expect(parsePolicy({}, { clients: ['x', 'y'] }).models.default.client).to.equal('x');
    expect(parsePolicy({}, { clients: ['x', 'main'] }).models.default.client).to.equal('main');
    expect(parsePolicy({ clients: { z: {} } }).models.default.client).to.equal('z');
  });

  it('accepts settings of a priority under its name and in levels', () => {
    const byName = parsed({ priorities: { order: ['now', 'later'], later: { maxInFlight: 3 } } });
    const inLevels = parsed({ priorities: { order: ['now', 'later'], levels: { later: { maxInFlight: 3 } } } });
    expect(byName).to.deep.equal(inLevels);
    expect(byName.priorities.levels['later']).to.deep.equal({ maxInFlight: 3 });
  });

  it('reads the hash of a gateway key alone or with what the key stands for', () => {
    const [one, two] = ['A1'.repeat(32), 'b2'.repeat(32)];
    const { gateway } = parsed({ gateway: { keys: [one, { hash: two, tenant: 'acme', priority: 'batch' }] } });
    expect(gateway).to.deep.equal({
      keys: [{ hash: one.toLowerCase() }, { hash: two, tenant: 'acme', priority: 'batch' }],
    });
  });

  it('leaves to models what the gateway does with a stream that breaks off, unless it is told', () => {
    expect(parsed({}).gateway.midStream).to.equal(undefined);
    expect(parsed({ gateway: { midStream: 'buffer' } }).gateway.midStream).to.equal('buffer');
  });

  describe('presets', () => {
    const published: Record<PresetName, object> = {
      firstAid: { deadlineMs: 8000, maxInFlight: 48 },
      interactive: { deadlineMs: 15_000, maxInFlight: 60 },
      batch: { deadlineMs: 600_000, maxInFlight: Infinity },
    };
    for (const name of PRESET_NAMES) {
      it(`${name} is the same by name and by value`, () => {
        expect(parsed({ preset: name }))
          .to.deep.equal(parsed(presets[name]))
          .and.include(published[name]);
      });
    }

    it('carry the published first-aid settings', () => {
      const { models: each, tenants } = parsed({ preset: 'firstAid' });
      expect(each.default.retry).to.include({ attempts: 3, baseMs: 250, capMs: 2500, jitter: 'full' });
      expect(each.default.breaker).to.include({ errorRatio: 0.25, openMs: 15_000, halfOpenShare: 0.1 });
      expect(tenants.default.maxInFlight).to.equal(12);
    });

    it('give way to what the policy says itself', () => {
      const policy = parsed({
        preset: 'interactive',
        deadlineMs: 20_000,
        quota: { account: { requestsPerMinute: 60, maxWaiting: 5 } },
        models: { default: { retry: { attempts: 2 } }, a: {} },
        tenants: { acme: { weight: 2 } },
        conversations: { maxWaiting: 1 },
        priorities: { order: ['interactive', 'nightly'], nightly: { maxInFlight: 2 } },
      });
      expect(policy).to.include({ deadlineMs: 20_000, maxInFlight: 60 });
      expect(policy.quota.account).to.include({ requestsPerMinute: 60, maxWaiting: 5, maxWaitMs: 10_000 });
      expect(policy.models['a']?.retry).to.include({ attempts: 2, baseMs: 300 });
      expect(policy.conversations).to.include({ maxWaiting: 1, maxWaitMs: 10_000 });
      expect(policy.priorities.levels).to.deep.equal({
        interactive: { maxInFlight: Infinity },
        nightly: { maxInFlight: 2 },
      });
    });
  });

  describe('retry classes', () => {
    const published: Record<RetryClass, readonly [number, number, number]> = {
      cheap: [6, 4000, 5],
      main: [5, 8000, 8],
      expensive: [4, 12_000, 4],
      lastResort: [6, 6000, 10],
    };
    for (const name of RETRY_CLASS_NAMES) {
      it(`${name} sets attempts, cap and breaker as published`, () => {
        const { a } = models({ a: { class: name } });
        expect([a?.retry.attempts, a?.retry.capMs, a?.breaker.consecutiveFailures]).to.deep.equal(published[name]);
      });
    }

    it('lie under what the model says and over default', () => {
      const { a } = models({
        default: { retry: { attempts: 2, baseMs: 7, capMs: 20 } },
        a: { class: 'cheap', retry: { capMs: 33 } },
      });
      expect(a?.retry).to.include({ attempts: 6, baseMs: 7, capMs: 33 });
    });
  });

  it('agrees with the machines on what they make of bounds that are left out', () => {
    const clock = { now: () => 0 };
    fc.assert(
      fc.property(
        fc.record({ initial: fc.nat(99), min: fc.nat(99), max: fc.nat(99) }, { requiredKeys: [] }),
        (concurrency) => {
          const value = { models: { default: { concurrency } } };
          if (policyProblems(value).length > 0) return;
          const { concurrency: resolved } = parsePolicy(value).models.default;
          expect(new Aimd(concurrency, clock).limit).to.equal((resolved as { initial: number }).initial);
          expect(() => new Aimd(resolved as AimdOptions, clock)).to.not.throw();
        },
      ),
      { numRuns: 60 },
    );
    for (const requestsPerMinute of [1, 59, 60, 61, 6000]) {
      const { account } = parsed({ quota: { account: { requestsPerMinute, tokensPerMinute: 7 } } }).quota;
      const { requests, tokens } = new QuotaLayer('layer', { requestsPerMinute, tokensPerMinute: 7 }, 0, 0);
      expect([account.burstRequests, account.burstTokens]).to.deep.equal([requests?.burst, tokens?.burst]);
    }
  });

  it('parses what it returned, also after a way through JSON', () => {
    fc.assert(
      fc.property(policyInputs, (input) => {
        const policy = parsePolicy(input);
        expect(parsePolicy(policy)).to.deep.equal(policy);
        expect(parsePolicy(JSON.parse(JSON.stringify(policy)))).to.deep.equal(policy);
      }),
      { numRuns: 30 },
    );
  });

  it('gives a policy or one SluiceError for any value', () => {
    const check = (value: unknown): void => {
      const error = thrownBy(value);
      if (error === undefined) {
        expect(policyProblems(value)).to.deep.equal([]);
        return;
      }
      expect(isSluiceError(error)).to.equal(true);
      expect(error).to.include({ code: 'invalid_policy' });
      expect(policyProblems(value)).to.not.deep.equal([]);
    };
    fc.assert(fc.property(fc.jsonValue(), check), { numRuns: 100 });
    fc.assert(fc.property(fc.anything(), check), { numRuns: 100 });
    // A policy that was right, with something else in one place.
    fc.assert(
      fc.property(policyInputs, fc.nat(), fc.jsonValue(), (input, place, value) => {
        check(replaced(structuredClone(input), place, value));
      }),
      { numRuns: 50 },
    );
  });

  it('survives values that no file can hold', () => {
    const self: Record<string, unknown> = {};
    self['models'] = { a: self };
    let deep: unknown = 1;
    for (let i = 0; i < 100_000; i++) deep = [deep];
    const shared: unknown[] = [1];
    let wide: unknown[] = shared;
    for (let i = 0; i < 40; i++) wide = [wide, wide];
    const throwing = Object.defineProperty({}, 'models', {
      enumerable: true,
      get() {
        throw new Error('no');
      },
    });
    const set = (value: unknown): unknown => ({ models: { a: { params: { set: { x: value } } } } });
    const values = [self, set(deep), set(wide), throwing, set(() => 1), set(new Date()), set(1n), set(Symbol('s'))];
    for (const value of [...values, set(new Map()), new Date()]) {
      expect(thrownBy(value)).to.include({ code: 'invalid_policy' });
    }
    expect(Object.prototype).to.not.have.property('polluted');
    expect(thrownBy(JSON.parse('{"__proto__":{"polluted":1}}'))).to.include({ code: 'invalid_policy' });
    expect({}).to.not.have.property('polluted');
  });
});

/** Puts `value` at one of the places in `target`, all of them counted. */
function replaced(target: unknown, place: number, value: unknown): unknown {
  const places: [Record<string, unknown>, string][] = [];
  const visit = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return;
    for (const key of Object.keys(node)) {
      places.push([node as Record<string, unknown>, key]);
      visit((node as Record<string, unknown>)[key]);
    }
  };
  visit(target);
  const chosen = places[place % Math.max(1, places.length)];
  if (chosen === undefined) return value;
  chosen[0][chosen[1]] = value;
  return target;
}

import { expect } from 'chai';
import { virtualRuntime } from '../../../lib/testing/virtualRuntime.ts';
import { Admission } from '../../../lib/limits/Admission.ts';
import type { AdmissionOptions } from '../../../lib/limits/AdmissionOptions.ts';
import type { NamedLayer } from '../../../lib/limits/LimitStore.ts';
import { deploymentPart, isLimited, layersAt, localPart } from '../../../lib/operators/shared/localPart.ts';
import type { DeploymentPart } from '../../../lib/operators/shared/localPart.ts';
import { storeName } from '../../../lib/operators/shared/storeName.ts';

const rates = { requestsPerMinute: 6, burstRequests: 2, tokensPerMinute: 60, burstTokens: 20 };
const noRates = {
  requestsPerMinute: undefined,
  burstRequests: undefined,
  tokensPerMinute: undefined,
  burstTokens: undefined,
};
const noBreaker = { consecutiveFailures: Infinity, errorRatio: Infinity };

describe('localPart', () => {
  it('keeps what is not decided in the store', () => {
    const options: AdmissionOptions = {
      maxInFlight: 7,
      priorities: { order: ['now', 'later'] },
      quota: { account: { ...rates, maxWaitMs: 5, passShare: 0.3 } },
      tenants: { acme: { ...rates, maxInFlight: 3, reservedInFlight: 1, weight: 2 } },
    };
    const local = localPart(options);
    expect(local).to.include({ maxInFlight: 7 });
    expect(local.priorities).to.deep.equal({ order: ['now', 'later'] });
    expect(local.quota?.account).to.deep.include({ maxWaitMs: 5, passShare: 0.3, ...noRates });
    expect(local.tenants).to.deep.equal({ acme: { ...noRates, maxInFlight: 3, reservedInFlight: 1, weight: 2 } });
  });

  it('takes the rates from account, clients, models, deployments and tenants', () => {
    const local = localPart({
      quota: { account: rates, clients: { azure: { ...rates, settle: 'usage' } } },
      models: { m: { client: 'azure', quota: rates, deployments: [{ quota: { ...rates, exhaustedMs: 9 } }] } },
    });
    expect(local.quota?.clients).to.deep.equal({ azure: { ...noRates, settle: 'usage' } });
    expect(local.models?.['m']).to.deep.equal({
      client: 'azure',
      quota: undefined,
      breaker: noBreaker,
      deployments: [{ quota: { ...noRates, exhaustedMs: 9 }, breaker: noBreaker }],
    });
  });

  it('takes the breakers from all models, those that are not listed too', () => {
    const breaker = { consecutiveFailures: 1 };
    const local = localPart({ models: { m: { breaker, deployments: [{ client: 'a', breaker }] } } });
    expect(local.models?.['default']).to.deep.include({ breaker: noBreaker, deployments: undefined });
    expect(local.models?.['m']).to.deep.include({ breaker: noBreaker });
    expect(local.models?.['m']?.deployments?.[0]).to.deep.include({ client: 'a', breaker: noBreaker });
    const own = localPart({ models: { default: { client: 'azure', breaker } } });
    expect(own.models?.['default']).to.deep.include({ client: 'azure', breaker: noBreaker });
  });

  it('lets as many wait as may, and no fewer than ask the store at a time', () => {
    const waiting = (maxWaiting?: number): unknown =>
      localPart({ quota: { account: { maxWaiting } } }).quota?.account?.maxWaiting;
    expect([waiting(1), waiting(63), waiting(65), waiting()]).to.deep.equal([64, 64, 65, 10_000]);
    expect(localPart({}).quota?.account?.maxWaiting).to.equal(10_000);
  });

  it('is a whole set of options, from nothing too', () => {
    const { clock, random } = virtualRuntime();
    expect(new Admission(localPart({}), clock, random).inFlight).to.equal(0);
    expect(localPart({})).to.deep.include({ tenants: {} });
    expect(localPart({}).quota?.clients).to.deep.equal({});
  });
});

describe('deploymentPart', () => {
  const options: AdmissionOptions = {
    models: {
      default: { client: 'other' },
      m: { breaker: noBreaker, deployments: [{ client: 'a' }, { client: 'b', model: 'm-eu' }] },
    },
  };

  it('finds one by its name', () => {
    const part = deploymentPart(options, 'm', 'm@b');
    expect(part?.place).to.deep.include({ name: 'm@b', client: 'b', model: 'm-eu' });
    expect(part?.model).to.equal(options.models?.['m']);
    expect(part?.deployment).to.equal(options.models?.['m']?.deployments?.[1]);
  });

  it('has none for one that is not there', () => {
    expect(deploymentPart(options, 'm', 'm')).to.equal(undefined);
  });

  it('goes by the default for a model that is not listed, and by nothing without one', () => {
    expect(deploymentPart(options, 'n', 'n')?.place.client).to.equal('other');
    expect(deploymentPart({}, 'n', 'n')).to.deep.include({ model: {}, deployment: {} });
  });
});

describe('layersAt', () => {
  const names = (options: AdmissionOptions, tenant = '', model = 'm', at = model): string[] =>
    layersOf(options, tenant, model, at).map(({ name }) => name);
  const layersOf = (options: AdmissionOptions, tenant = '', model = 'm', at = model): readonly NamedLayer[] =>
    layersAt(options, model, deploymentPart(options, model, at) as DeploymentPart, tenant);

  it('is that of the deployment where nothing is limited', () => {
    expect(layersOf({})).to.deep.equal([{ name: 'm', ...noRates }]);
    expect(names({ models: { m: { deployments: [{ client: 'a' }, {}] } } }, '', 'm', 'm@a')).to.deep.equal(['m@a']);
  });

  it('goes from the account to the tenant', () => {
    const options: AdmissionOptions = {
      quota: { account: rates },
      models: { m: { quota: rates, deployments: [{ quota: rates }] } },
      tenants: { acme: rates },
    };
    expect(layersOf(options, 'acme')).to.deep.equal(
      ['account', 'models.m', 'm', 'tenant:acme'].map((name) => ({ name, ...rates })),
    );
  });

  it('takes the account of the client in place of that of all, if it has one', () => {
    const options: AdmissionOptions = {
      quota: { account: rates, clients: { azure: { tokensPerMinute: 5 }, free: {} } },
      models: { m: { deployments: [{ client: 'main' }, { client: 'azure' }, { client: 'free' }] } },
    };
    const at = (place: string): string[] => names(options, '', 'm', place);
    expect(at('m@main')).to.deep.equal(['account', 'm@main']);
    expect(at('m@azure')).to.deep.equal(['clients.azure', 'm@azure']);
    expect(at('m@free')).to.deep.equal(['m@free']);
    expect(layersOf(options, '', 'm', 'm@azure')[0]).to.deep.equal({
      name: 'clients.azure',
      ...noRates,
      tokensPerMinute: 5,
    });
    const inherited: AdmissionOptions = {
      quota: { account: rates, clients: {} },
      models: { m: { client: 'toString' } },
    };
    expect(names(inherited)).to.deep.equal(['account', 'm']);
  });

  it('gives a tenant that is limited a layer of its own, by the default too, and none to calls without one', () => {
    const options: AdmissionOptions = { tenants: { default: { requestsPerMinute: 6 }, free: { maxInFlight: 3 } } };
    expect(names(options, 'any')).to.deep.equal(['m', 'tenant:any']);
    expect(names(options, 'free')).to.deep.equal(['m']);
    expect(names(options, '')).to.deep.equal(['m']);
    expect(names({}, 'any')).to.deep.equal(['m']);
  });

  it('is limited by requests, tokens or both, and by no burst alone', () => {
    expect([{ requestsPerMinute: 6 }, { tokensPerMinute: 6 }, rates].map(isLimited)).to.deep.equal([true, true, true]);
    expect([{}, noRates, { burstRequests: 6, burstTokens: 6 }].map(isLimited)).to.deep.equal([false, false, false]);
  });
});

describe('storeName', () => {
  it('keeps a name as it is, but for what has a meaning in the store', () => {
    expect(storeName('gpt-5.5@azure#2')).to.equal('gpt-5.5@azure#2');
    expect(storeName('a{b}c%7b')).to.equal('a%7bb%7dc%257b');
  });
});

import { expect } from 'chai';
import { liveStanding } from '../../../lib/http/live/liveStanding.ts';
import { deploymentOf, snapshotOf } from './parts.ts';

const BOUNDS = { maxModels: 2, maxTenants: 2 };
const layer = { layer: 'account', requests: { level: 1, burst: 2, perMinute: 60 }, tokens: undefined };

describe('liveStanding', () => {
  it('shows deployments with what JSON can say, and layers that limit something', () => {
    const deployment = deploymentOf('m', { layers: [layer, { layer: 'm', requests: undefined, tokens: undefined }] });
    const models = { m: { waiting: 4, deployments: [deployment, deploymentOf('m@other', { limit: 8 })] } };
    const standing = liveStanding(snapshotOf({ admission: { models } }), BOUNDS);
    const [model] = standing.models;
    expect(model?.waiting).to.equal(4);
    expect(model?.deployments.map(({ limit }) => limit)).to.deep.equal([null, 8]);
    expect(model?.deployments[0]?.layers).to.deep.equal([layer]);
    expect(JSON.parse(JSON.stringify(standing.models[0]?.deployments[1]))).to.deep.equal(model?.deployments[1]);
  });

  it('shows as many models as it may, and says how many more there are', () => {
    const models = Object.fromEntries(['a', 'b', 'c'].map((name) => [name, { waiting: 0, deployments: [] }]));
    const snapshot = snapshotOf({ admission: { models } });
    expect(liveStanding(snapshot, BOUNDS)).to.deep.include({ moreModels: 1 });
    expect(liveStanding(snapshot, { ...BOUNDS, maxModels: 3 })).to.deep.include({ moreModels: 0 });
  });

  it('shows the tenants that wait most first, then those that are busy, then those near their cap', () => {
    const tenants = { busy: { inFlight: 9, waiting: 0 }, queue: { inFlight: 0, waiting: 5 } };
    const snapshot = snapshotOf({ admission: { tenants }, spend: { capUsed: { spender: 0.9, busy: 0.2 } } });
    expect(liveStanding(snapshot, { ...BOUNDS, maxTenants: 3 }).tenants).to.deep.equal([
      { name: 'queue', inFlight: 0, waiting: 5, capUsed: null },
      { name: 'busy', inFlight: 9, waiting: 0, capUsed: 0.2 },
      { name: 'spender', inFlight: 0, waiting: 0, capUsed: 0.9 },
    ]);
  });

  it('sums the tenants that it leaves out', () => {
    const tenants = Object.fromEntries(
      Array.from({ length: 10 }, (_, i) => [`t${i}`, { inFlight: 1, waiting: 10 - i }] as const),
    );
    const standing = liveStanding(snapshotOf({ admission: { tenants } }), BOUNDS);
    expect(standing.tenants.map(({ name }) => name)).to.deep.equal(['t0', 't1']);
    expect(standing.moreTenants).to.deep.equal({ count: 8, inFlight: 8, waiting: 36 });
  });

  it('sums what was spent, and names the dearest models', () => {
    const total = (cost: number) => ({ cost, inputTokens: 10, outputTokens: 5, wastedTokens: 2 });
    const models = { a: total(1), b: total(3), c: total(2) };
    expect(liveStanding(snapshotOf({ spend: { models } }), BOUNDS).spend).to.deep.equal({
      ...{ day: '2026-01-01', cost: 6, tokens: 45, wastedTokens: 6 },
      models: [
        ['b', 3],
        ['c', 2],
      ],
    });
  });

  it('stays small whatever callers name', () => {
    const long = (i: number): string => `${i}${'x'.repeat(10_000)}`;
    const names = Array.from({ length: 1_000 }, (_, i) => long(i));
    const models = Object.fromEntries(names.map((name) => [name, { waiting: 0, deployments: [deploymentOf(name)] }]));
    const tenants = Object.fromEntries(names.map((name) => [name, { inFlight: 1, waiting: 0 }]));
    expect(JSON.stringify(liveStanding(snapshotOf({ admission: { models, tenants } }), BOUNDS)).length).to.be.below(
      2_000,
    );
  });
});

import { expect } from 'chai';
import { Admission } from '../../../lib/limits/Admission.ts';
import type { AdmissionOptions } from '../../../lib/limits/AdmissionOptions.ts';
import type { AdmissionPool, AdmissionTicket } from '../../../lib/limits/AdmissionPool.ts';
import { localPart } from '../../../lib/operators/shared/localPart.ts';
import { SharedTargets } from '../../../lib/operators/shared/SharedTargets.ts';
import { virtualRuntime } from '../../../lib/testing/virtualRuntime.ts';
import { ScriptedStore } from '../../helpers/scriptedStore.ts';

describe('SharedTargets', () => {
  let store: ScriptedStore;
  let machine: Admission;
  let targets: SharedTargets;

  function start(options: AdmissionOptions = {}): void {
    const { clock, random } = virtualRuntime();
    store = new ScriptedStore();
    machine = new Admission(localPart(options), clock, random);
    const limits = store.connect();
    const parts = { store: limits, quotas: limits.quotas('calls', {}), clock, changed: () => {} };
    targets = new SharedTargets(machine, options, parts);
  }
  const reload = (options: AdmissionOptions): void => {
    machine.reload(localPart(options));
    targets.reload(options);
  };
  const poolOf = (model: string): AdmissionPool => {
    const pool = machine.poolOf(model);
    targets.know(pool, model);
    return pool;
  };
  const ask = (model: string, priority?: string): AdmissionTicket => {
    const ticket = machine.ask({ model, priority, cost: { requests: 1, tokens: 0, explicit: true } });
    if (ticket.kind !== 'ticket') throw new Error(ticket.code);
    targets.know(ticket.pool, model);
    return ticket;
  };
  const used = (deployment: string): readonly number[] => store.slotsOf(`deployment.${deployment}`).used;
  const limited = { concurrency: { limit: 4 } };
  const two = { ...limited, deployments: [{ client: 'a' }, { client: 'b' }] };

  it('know the models that are listed from the first, others once they are asked for, and each once', () => {
    start({ models: { m: two } });
    expect([...store.breakers.keys()]).to.deep.equal(['m@a', 'm@b']);
    const pool = poolOf('n');
    expect([...store.breakers.keys()]).to.deep.equal(['m@a', 'm@b', 'n']);
    const [target] = targets.of(pool);
    store.breakers.clear();
    expect(targets.of(poolOf('n'))).to.deep.equal([target]);
    expect(targets.of(poolOf('m')).map(({ target: { name } }) => name)).to.deep.equal(['m@a', 'm@b']);
    expect(store.breakers.size).to.equal(0);
  });

  it('stand as the gates of the deployments here', () => {
    start({ models: { m: two } });
    const [first] = machine.poolOf('m').targets;
    expect(first?.gate).to.equal(first && targets.at(first));
    expect(first && targets.knownAt(first)).to.equal(first?.gate);
    start();
    const [unasked] = machine.poolOf('n').targets;
    expect(unasked && targets.knownAt(unasked)).to.equal(undefined);
  });

  it('refuse a model only where every deployment does', () => {
    start({ models: { m: two, n: limited, free: {} } });
    const [m, n, free] = ['m', 'n', 'free'].map((model) => machine.poolOf(model)) as [
      AdmissionPool,
      AdmissionPool,
      AdmissionPool,
    ];
    const refusing = () => [m, n, free].map((pool) => targets.refusing(pool));
    expect(refusing()).to.deep.equal([undefined, undefined, undefined]);
    store.slotsOf('deployment.m@a').refusing = 'LOST';
    store.slotsOf('deployment.n').refusing = 'GONE';
    expect(refusing()).to.deep.equal([undefined, 'GONE', undefined]);
    store.slotsOf('deployment.m@b').refusing = 'TIMEOUT';
    expect(refusing()).to.deep.equal(['LOST', 'GONE', undefined]);
    store.slotsOf('deployment.m@a').refusing = undefined;
    expect(refusing()).to.deep.equal([undefined, 'GONE', undefined]);
    const three = [...two.deployments, { client: 'c' }];
    start({ models: { m: { ...two, deployments: three } } });
    for (const name of ['m@a', 'm@b']) store.slotsOf(`deployment.${name}`).refusing = 'LOST';
    expect(targets.refusing(machine.poolOf('m'))).to.equal(undefined);
  });

  it('tell the store what is in flight and wanted at each, and say how many wait of each priority', () => {
    start({ models: { m: two, n: limited } });
    for (const priority of ['interactive', 'interactive', 'batch', 'batch', 'batch']) ask('m', priority);
    expect(machine.next()).to.include({ kind: 'granted' });
    ask('n', 'batch');
    expect(targets.update()).to.deep.equal([1, 4]);
    expect([used('m@a'), used('m@b'), used('n')]).to.deep.equal([
      [1, 4],
      [0, 4],
      [0, 1],
    ]);
  });

  it('say that nobody waits where nothing is known of any model, or not yet', () => {
    start();
    expect(targets.update()).to.deep.equal([0, 0]);
    start({ models: { m: limited } });
    machine.reload(localPart({ models: { m: two } }));
    expect(targets.update()).to.deep.equal([0, 0]);
  });

  it('look at a model as long as something waits or is in flight, and once more', () => {
    start({ models: { m: two } });
    const ticket = ask('m');
    targets.update();
    const step = machine.next();
    if (step.kind !== 'granted') throw new Error(step.kind);
    expect(step.ticket).to.equal(ticket);
    targets.update();
    expect(used('m@a')).to.deep.equal([1, 0]);
    machine.end(step.grant, { kind: 'success' });
    machine.close(step.grant);
    targets.update();
    expect(used('m@a')).to.deep.equal([0, 0]);
    const slots = store.slotsOf('deployment.m@a');
    let looked = 0;
    slots.use = () => void looked++;
    const [target] = machine.poolOf('m').targets;
    Object.defineProperty(target, 'inFlight', { get: () => looked++ });
    targets.update();
    expect(looked, 'nothing to be seen there').to.equal(0);
    ask('m');
    targets.update();
    expect(looked).to.be.greaterThan(0);
  });

  it('look on where something is in flight at the second deployment only, or something waits', () => {
    start({ models: { m: { ...two, deployments: [{ client: 'a', concurrency: { limit: 1 } }, { client: 'b' }] } } });
    for (let i = 0; i < 2; i++) ask('m');
    const grants = [machine.next(), machine.next()].map((step) => (step.kind === 'granted' ? step.grant : undefined));
    const atA = grants.find((grant) => grant?.target.name === 'm@a');
    if (atA === undefined) throw new Error('not granted');
    machine.end(atA, { kind: 'success' });
    machine.close(atA);
    for (let i = 0; i < 2; i++) {
      targets.update();
      expect(used('m@b')).to.deep.equal([1, 0]);
    }
    ask('m');
    targets.update();
    expect(used('m@b')).to.deep.equal([1, 1]);
  });

  it('come and go with their models, and take other options', () => {
    start({ models: { m: two, n: limited } });
    const kept = targets.of(machine.poolOf('m'))[1];
    const last = store.slotsOf('deployment.m@a');
    reload({ models: { m: { concurrency: { limit: 9 }, deployments: [{ client: 'b' }, { client: 'c' }] } } });
    expect(last.closed).to.equal(true);
    expect(store.slotsOf('deployment.m@b')).to.include({ closed: false, limit: 9 });
    expect(targets.of(machine.poolOf('m'))[0]).to.equal(kept);
    expect(store.slotsOf('deployment.m@c')).to.include({ closed: false, limit: 9 });
  });

  it('go by the newest options for models that come later', () => {
    start();
    reload({ models: { default: { concurrency: { limit: 3 } } } });
    poolOf('n');
    expect(store.slotsOf('deployment.n').limit).to.equal(3);
  });

  it('give everything back when they are closed', () => {
    start({ models: { m: two, n: limited } });
    targets.close();
    expect([...store.slots.values()].map(({ closed }) => closed)).to.deep.equal([true, true, true]);
  });

  describe('of many models', () => {
    const MANY = 1024;
    const open = (): number => [...store.slots.values()].filter(({ closed }) => !closed).length;
    /** Of models that are not listed, which the machine forgets as soon as others are asked for. */
    const comeAndGo = (from: number, count: number): void => {
      for (let i = from; i < from + count; i++) machine.cancel(ask(`n${i}`));
    };

    it('are given back once there are many of which the machine knows nothing any more', () => {
      start({ models: { default: limited, stays: limited } });
      const stays = targets.of(poolOf('stays'));
      comeAndGo(0, MANY - 1);
      expect(open()).to.equal(MANY);
      comeAndGo(MANY, 1);
      expect(open()).to.equal(2);
      expect(targets.of(poolOf('stays'))).to.deep.equal(stays);
      comeAndGo(MANY + 1, MANY - 1);
      expect(open(), 'and again').to.be.lessThan(10);
    });

    it('are looked at again only when there are twice as many as stay', () => {
      const names = Array.from({ length: MANY }, (_, i) => `s${i}`);
      start({ models: Object.fromEntries(['default', ...names].map((name) => [name, limited])) });
      comeAndGo(0, MANY);
      expect(open()).to.equal(2 * MANY);
      comeAndGo(MANY, 1);
      expect(open()).to.equal(MANY + 1);
    });
  });
});

import { expect } from 'chai';
import { Admission } from '../../../lib/limits/Admission.ts';
import type { AdmissionOptions, ModelAdmissionOptions } from '../../../lib/limits/AdmissionOptions.ts';
import type { AdmissionTarget } from '../../../lib/limits/AdmissionTarget.ts';
import type { Grant } from '../../../lib/core/ports.ts';
import { localPart } from '../../../lib/operators/shared/localPart.ts';
import { SharedTarget } from '../../../lib/operators/shared/SharedTarget.ts';
import { virtualRuntime } from '../../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../../lib/testing/virtualRuntime.ts';
import { ScriptedStore } from '../../helpers/scriptedStore.ts';
import type { ScriptedRoute } from '../../helpers/scriptedStore.ts';

const NO_TOKENS = { requests: 1, tokens: 0 };

describe('SharedTarget', () => {
  let runtime: VirtualRuntime;
  let store: ScriptedStore;
  let machine: Admission;
  let target: AdmissionTarget;
  let shared: SharedTarget;
  let changed: number;

  /** The first deployment of `m`. */
  function start(options: AdmissionOptions = {}): void {
    runtime = virtualRuntime();
    store = new ScriptedStore();
    machine = new Admission(localPart(options), runtime.clock, runtime.random);
    target = machine.poolOf('m').targets[0] as AdmissionTarget;
    changed = 0;
    const limits = store.connect();
    const quotas = limits.quotas('calls', {});
    shared = new SharedTarget(target, 'm', options, {
      store: limits,
      quotas,
      clock: runtime.clock,
      changed: () => changed++,
    });
    target.gate = shared;
  }
  const reload = (options: AdmissionOptions): void => {
    machine.reload(localPart(options));
    shared.reload(options);
  };
  const model = (m: ModelAdmissionOptions): AdmissionOptions => ({ models: { m } });
  const sendOne = (tenant?: string): void => {
    machine.ask({ model: 'm', tenant, cost: { ...NO_TOKENS, explicit: true } });
    expect(machine.next().kind).to.equal('granted');
  };

  it('has its breaker and its ceiling in the store, by its name', () => {
    const breaker = { consecutiveFailures: 3 };
    start(model({ breaker, deployments: [{ client: 'a{1}', concurrency: { limit: 4 } }, {}] }));
    expect(store.breakerOf('m@a%7b1%7d').options).to.deep.equal(breaker);
    expect(store.slotsOf('deployment.m@a%7b1%7d').limit).to.equal(4);
    expect(shared.places).to.equal(4);
    store.slotsOf('deployment.m@a%7b1%7d').onChange?.();
    expect(changed).to.equal(1);
  });

  it('takes its own breaker and limit over those of the model', () => {
    const own = { breaker: { consecutiveFailures: 2 }, concurrency: { limit: 2 } };
    start(model({ breaker: { consecutiveFailures: 3 }, concurrency: { limit: 3 }, deployments: [own] }));
    expect([store.breakerOf('m').options, shared.places]).to.deep.equal([own.breaker, 2]);
    start(model({ breaker: { consecutiveFailures: 3 }, concurrency: { limit: 3 } }));
    expect([store.breakerOf('m').options, shared.places]).to.deep.equal([{ consecutiveFailures: 3 }, 3]);
    start(model({ concurrency: { initial: 4 } }));
    expect([store.breakerOf('m').options, shared.places]).to.deep.equal([{}, Infinity]);
  });

  it('brings other rules to the store', () => {
    start(model({ breaker: { consecutiveFailures: 3 }, concurrency: { limit: 3 } }));
    reload(model({ breaker: { consecutiveFailures: 4 }, concurrency: { limit: 1 } }));
    expect([store.breakerOf('m').options, store.slotsOf('deployment.m').limit]).to.deep.equal([
      { consecutiveFailures: 4 },
      1,
    ]);
    const deployments = [{ breaker: { consecutiveFailures: 5 } }];
    reload(model({ breaker: { consecutiveFailures: 4 }, deployments }));
    expect(store.breakerOf('m').options).to.deep.equal({ consecutiveFailures: 5 });
    expect(store.slotsOf('deployment.m').closed).to.equal(true);
    reload({});
    expect(store.breakerOf('m').options).to.deep.equal({});
  });

  it('stays as it is where the options know it no longer', () => {
    start(model({ concurrency: { limit: 3 }, quota: { requestsPerMinute: 60 } }));
    shared.reload(model({ deployments: [{ client: 'a' }, { client: 'b' }] }));
    expect([shared.places, shared.decides('')]).to.deep.equal([3, true]);
  });

  it('is closed while its breaker is open, or while it is left alone', () => {
    start();
    expect(shared.closedMs).to.equal(0);
    const breaker = store.breakerOf('m');
    Object.assign(breaker, { state: 'half_open', retryAfterMs: 400 });
    expect(shared.closedMs).to.equal(0);
    Object.assign(breaker, { state: 'open', retryAfterMs: 400.2 });
    expect(shared.closedMs).to.equal(401);
    runtime.advance(1000);
    shared.rest(500);
    expect(shared.closedMs).to.equal(500);
    runtime.advance(200);
    expect(shared.closedMs).to.equal(401);
    breaker.state = 'closed';
    expect(shared.closedMs).to.equal(300);
    runtime.advance(400);
    expect(shared.closedMs).to.equal(0);
  });

  it('has room for as many as its limit and its places allow, less those in flight and those that ask', () => {
    start(model({ concurrency: { limit: 9 } }));
    expect(shared.room).to.equal(9);
    sendOne();
    shared.asking = 3;
    expect(shared.room).to.equal(5);
    store.slotsOf('deployment.m').have = 6;
    expect(shared.room).to.equal(2);
    start(model({ concurrency: { initial: 5 } }));
    sendOne();
    expect(shared.room).to.equal(4);
  });

  describe('load', () => {
    const layer = (layerName: string, requests?: number, tokens?: number) => {
      const unit = (level: number | undefined) =>
        level === undefined ? undefined : { level, burst: 8, perMinute: 60 };
      return { layer: layerName, requests: unit(requests), tokens: unit(tokens) };
    };
    const route = (): ScriptedRoute => {
      shared.lineOf('');
      return store.routeOf('account m');
    };

    it('is the largest part in use of any rate, as far as the store has told', () => {
      start({ quota: { account: { requestsPerMinute: 60 } } });
      expect(shared.load('')).to.equal(0);
      route().shown = [layer('account', 2, 8), layer('m', 6)];
      expect(shared.load('')).to.equal(0.75);
      route().shown = [layer('account', 6, 8), layer('m', undefined, 4)];
      expect(shared.load('acme')).to.equal(0.5);
    });

    it('is at least the part of its limit that is in flight here', () => {
      start({ quota: { account: { requestsPerMinute: 60 } }, ...model({ concurrency: { limit: 2 } }) });
      route().shown = [layer('account', 6)];
      shared.lineOf('').bring({
        grant: { reservedTokens: 0 } as Grant,
        cost: NO_TOKENS,
        ticket: undefined as never,
        onCooldown: undefined,
      });
      sendOne();
      expect(shared.load('')).to.equal(0.5);
    });
  });

  describe('a line', () => {
    const options: AdmissionOptions = {
      quota: { account: { requestsPerMinute: 60, settle: 'usage' } },
      tenants: { acme: { tokensPerMinute: 60 }, bolt: {} },
    };

    it('is that of all for tenants without a layer of their own', () => {
      start(options);
      expect(shared.lineOf('bolt')).to.equal(shared.lineOf(''));
      expect(shared.lineOf('acme')).not.to.equal(shared.lineOf(''));
      expect(shared.lineOf('acme')).to.equal(shared.lineOf('acme'));
      expect([...store.routes.keys()]).to.deep.equal(['account m', 'account m tenant:acme']);
    });

    it('reports to the layer that is limited and not of a tenant, the last of them', () => {
      start(options);
      shared.lineOf('acme');
      expect(store.routeOf('account m').options.reportsTo).to.equal('account');
      expect(store.routeOf('account m tenant:acme').options.reportsTo).to.equal('account');
      start({
        ...options,
        ...model({ quota: { requestsPerMinute: 6 }, deployments: [{ quota: { tokensPerMinute: 6 } }] }),
      });
      shared.lineOf('');
      expect(store.routeOf('account models.m m').options.reportsTo).to.equal('m');
      start({ tenants: options.tenants });
      shared.lineOf('acme');
      expect(store.routeOf('m tenant:acme').options.reportsTo).to.equal(undefined);
      const ofClient = {
        quota: { clients: { 'a tenant:': { requestsPerMinute: 6 } } },
        ...model({ client: 'a tenant:' }),
      };
      start(ofClient);
      shared.lineOf('');
      expect(store.routeOf('clients.a tenant: m').options.reportsTo).to.equal('clients.a tenant:');
    });

    it('settles and refunds as the provider of the deployment does', () => {
      start(options);
      shared.lineOf('');
      const { settle, refundOn } = target.rules;
      expect(store.routeOf('account m').options).to.deep.include({ settle, refundOn });
      expect(settle).to.equal('usage');
    });

    it('decides, lets and waits alone by what it limits and has brought', () => {
      start(options);
      const bring = (tenant: string, tokens: number): void => {
        const grant = { reservedTokens: tokens } as Grant;
        shared
          .lineOf(tenant)
          .bring({ grant, cost: { requests: 1, tokens }, ticket: undefined as never, onCooldown: undefined });
      };
      expect([shared.decides(''), shared.waitsAlone(''), shared.waitsAlone('acme')]).to.deep.equal([true, false, true]);
      expect(shared.lets('', NO_TOKENS)).to.equal(false);
      bring('', 0);
      bring('acme', 9);
      expect([shared.lets('', NO_TOKENS), shared.waitsAlone('acme')]).to.deep.equal([true, false]);
      expect([9, 10].map((tokens) => shared.lets('acme', { requests: 1, tokens }))).to.deep.equal([true, false]);
      start({});
      expect([shared.decides(''), shared.waitsAlone('')]).to.deep.equal([false, false]);
    });

    it('stays through a reload where only rates change, and is begun anew where a layer comes or goes', () => {
      start(options);
      const [open, acme] = [shared.lineOf(''), shared.lineOf('acme')];
      reload({ ...options, quota: { account: { requestsPerMinute: 90 } } });
      expect([shared.lineOf(''), shared.lineOf('acme')]).to.deep.equal([open, acme]);
      expect(store.routeOf('account m').layers[0]).to.include({ name: 'account', requestsPerMinute: 90 });
      reload({ ...options, tenants: {} });
      expect(shared.lineOf('')).to.equal(open);
      expect(shared.lineOf('acme')).to.equal(open);
      reload({ tenants: options.tenants });
      expect(shared.lineOf('')).not.to.equal(open);
      expect(shared.lineOf('acme')).not.to.equal(acme);
    });

    describe('of many tenants', () => {
      const MANY = 1024;
      const tenants = { default: { requestsPerMinute: 60 } };
      const lines = (from: number, count: number) =>
        Array.from({ length: count }, (_, i) => shared.lineOf(`t${from + i}`));
      const routesMade = (): number => store.routes.size;

      it('is forgotten where it is idle, once there are many, but never that of all', () => {
        start({ tenants });
        const open = shared.lineOf('');
        const [first, busy] = lines(0, MANY - 1);
        if (busy) busy.places = 1;
        store.routes.clear();
        lines(0, MANY - 1);
        expect(routesMade(), 'all known').to.equal(0);
        shared.lineOf('one more');
        expect(shared.lineOf('')).to.equal(open);
        expect(shared.lineOf('t1')).to.equal(busy);
        expect(shared.lineOf('t0')).not.to.equal(first);
        // That of the newcomer, and of the one asked for since.
        expect(routesMade()).to.equal(2);
      });

      it('is looked at again only when there are twice as many as stay', () => {
        start({ tenants });
        shared.lineOf('');
        for (const line of lines(0, MANY - 1)) line.places = 1;
        const [idle] = lines(MANY, MANY);
        expect(shared.lineOf(`t${MANY}`), 'none was forgotten meanwhile').to.equal(idle);
        lines(3 * MANY, 1);
        expect(shared.lineOf(`t${MANY}`)).not.to.equal(idle);
      });
    });
  });

  it('shows its breaker, and its quota where there is one', () => {
    start(model({}));
    Object.assign(store.breakerOf('m'), { state: 'open', retryAfterMs: 9 });
    const breaker = { state: 'open', retryAfterMs: 9, consecutiveFailures: 0, calls: 0, failures: 0 };
    expect(shared.shown()).to.deep.equal({ breaker });
    start({ quota: { account: { requestsPerMinute: 60 } } });
    shared.lineOf('');
    const unit = { level: 1, burst: 2, perMinute: 3 };
    const requests = { layer: 'account', requests: unit, tokens: undefined };
    const tokens = { layer: 'models.m', requests: undefined, tokens: unit };
    const route = store.routeOf('account m');
    Object.assign(route, {
      cooldownMs: 70,
      shown: [requests, tokens, { layer: 'm', requests: undefined, tokens: undefined }],
    });
    expect(shared.shown()).to.deep.equal({
      breaker: { ...breaker, state: 'closed', retryAfterMs: 0 },
      cooldownMs: 70,
      layers: [requests, tokens],
    });
    start({ quota: { account: { requestsPerMinute: 60 } }, tenants: { default: { tokensPerMinute: 6 } } });
    shared.shown();
    expect([...store.routes.keys()], 'that of all').to.deep.equal(['account m']);
  });
});

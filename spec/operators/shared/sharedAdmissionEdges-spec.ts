import { expect } from 'chai';
import { Subscriber } from 'rxjs';
import { SluiceError } from '../../../lib/core/errors.ts';
import { DROPPED_UNSENT, SUCCESS } from '../../../lib/core/outcome.ts';
import type { Admitted } from '../../../lib/core/ports.ts';
import type { AdmissionOptions } from '../../../lib/limits/AdmissionOptions.ts';
import { createSharedAdmission } from '../../../lib/operators/shared/createSharedAdmission.ts';
import type { SharedAdmission } from '../../../lib/operators/shared/createSharedAdmission.ts';
import { virtualRuntime } from '../../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../../lib/testing/virtualRuntime.ts';
import { callNow } from '../../helpers/admissionLoad.ts';
import type { LoadCall, Started } from '../../helpers/admissionLoad.ts';
import { ScriptedStore } from '../../helpers/scriptedStore.ts';
import type { ScriptedRoute } from '../../helpers/scriptedStore.ts';

const held = { takesMs: Infinity };
const account = { requestsPerMinute: 60 };
const open = (retryAfterMs?: number): SluiceError => new SluiceError('circuit_open', 'is open', { retryAfterMs });

describe('a shared admission', () => {
  let runtime: VirtualRuntime;
  let store: ScriptedStore;
  let admission: SharedAdmission;

  function start(options: AdmissionOptions = {}): void {
    runtime = virtualRuntime();
    store = new ScriptedStore();
    admission = createSharedAdmission(options, store.connect(), runtime);
  }
  const call = (load: LoadCall = {}): Started => callNow(admission, runtime, load);
  const errorOf = ({ error }: Started): SluiceError | undefined => error as SluiceError | undefined;
  const codeOf = (started: Started): string | undefined => errorOf(started)?.code;
  const route = (names = 'account m'): ScriptedRoute => store.routeOf(names);
  const unavailableMs = (at = 0): number | undefined =>
    admission.snapshot().models['m']?.deployments[at]?.unavailableMs;

  describe('where the breaker of the store refuses', () => {
    const two = { models: { m: { deployments: [{ client: 'a' }, { client: 'b' }] } } };
    const where = (started: Started): string | undefined => started.admitted?.deployment.client;

    it('fails at once at the only deployment, and says for which model', () => {
      start();
      call();
      const breaker = store.breakerOf('m');
      breaker.answer = (ask) => ask.refuse(open(300));
      expect(errorOf(call())).to.include({ code: 'circuit_open', model: 'm', retryAfterMs: 300 });
      expect(breaker.asks).to.have.length(2);
      expect([unavailableMs(), admission.snapshot().inFlight]).to.deep.equal([0, 0]);
    });

    it('goes on to another deployment, and leaves the first to others for as long as it says, a second at most', () => {
      for (const [retryAfterMs, restMs] of [
        [300, 300],
        [5000, 1000],
        [undefined, 1000],
      ]) {
        start(two);
        store.breakerOf('m@a').answer = (ask) => ask.refuse(open(retryAfterMs));
        expect(where(call())).to.equal('b');
        expect([unavailableMs(0), unavailableMs(1)]).to.deep.equal([restMs, 0]);
        expect(store.breakerOf('m@a').asks).to.have.length(1);
      }
    });

    it('fails where the other deployment cannot be asked either', () => {
      start(two);
      store.breakerOf('m@a').answer = (ask) => ask.refuse(open(300));
      admission.exhausted('m', 'm@b', 1000);
      expect(codeOf(call())).to.equal('circuit_open');
      expect(unavailableMs(0), 'nothing else would be left').to.equal(0);
    });

    it('fails where the store is what has failed, whatever else could be asked', () => {
      start(two);
      const breaker = store.breakerOf('m@a');
      breaker.answer = (ask) => ask.refuse(new SluiceError('limiter_unavailable', 'lost'));
      expect(errorOf(call())).to.include({ code: 'limiter_unavailable', model: 'm' });
      breaker.answer = (ask) => ask.refuse(new Error('of a client'));
      const failed = errorOf(call());
      expect(failed).to.include({ code: 'limiter_unavailable', model: 'm', while: 'queue' });
      expect(failed?.message).to.include('ERROR');
      expect(store.breakerOf('m@b').asks).to.have.length(0);
      expect(unavailableMs(0)).to.equal(0);
    });

    it('gives back once what the store’s quota had granted', () => {
      start({ quota: { account } });
      const refused = call();
      store.breakerOf('m').answer = (ask) => ask.refuse(open());
      const [ask] = route().asks;
      ask?.grant();
      expect(codeOf(refused)).to.equal('circuit_open');
      expect(ask?.released).to.deep.equal([DROPPED_UNSENT]);
    });

    it('asks nobody else for one that has left within the asking', () => {
      start(two);
      const breaker = store.breakerOf('m@a');
      const gone = new Subscriber<Admitted>();
      breaker.answer = (ask) => {
        gone.unsubscribe();
        ask.refuse(open(300));
      };
      admission.acquire({ model: 'm', cost: { requests: 1, tokens: 0, explicit: true } }).subscribe(gone);
      expect(breaker.asks).to.have.length(1);
      expect([unavailableMs(0), store.breakerOf('m@b').asks.length, admission.snapshot().inFlight]).to.deep.equal([
        0, 0, 0,
      ]);
    });
  });

  describe('while the breaker of the store has not answered', () => {
    it('gives back at once what one held that leaves', () => {
      start({ quota: { account } });
      const leaves = call();
      store.breakerOf('m').answer = undefined;
      route().asks[0]?.grant();
      expect([admission.snapshot().inFlight, store.breakerOf('m').asks[0]?.open]).to.deep.equal([1, true]);
      leaves.subscription.unsubscribe();
      expect([admission.snapshot().inFlight, store.breakerOf('m').asks[0]?.open]).to.deep.equal([0, false]);
      expect(route().asks[0]?.released).to.deep.equal([DROPPED_UNSENT]);
    });

    it('refuses nobody who was granted the rest, if nothing may go any more', () => {
      start({ maxInFlight: 2 });
      call();
      store.breakerOf('m').answer = undefined;
      const asks = call(held);
      const calls = store.slotsOf('calls');
      calls.refusing = 'TIMEOUT';
      calls.onChange?.();
      expect(errorOf(asks)).to.equal(undefined);
      store.breakerOf('m').asks.at(-1)?.pass();
      expect(asks.admitted).to.not.equal(undefined);
    });
  });

  it('says how long one has waited, from when it came', () => {
    start({ maxInFlight: 1 });
    runtime.advance(700);
    const first = call(held);
    const second = call(held);
    runtime.advance(300);
    first.admitted?.release(SUCCESS);
    expect([first, second].map(({ admitted }) => admitted?.waitedMs)).to.deep.equal([0, 300]);
  });

  it('says which refusals come on entry', () => {
    start();
    admission.exhausted('m', 'm', 1000);
    expect(errorOf(call())).to.include({ code: 'circuit_open', model: 'm', while: 'entry' });
  });

  it('takes no place for one that has left before it came', () => {
    start({ maxInFlight: 1, quota: { account: { maxWaiting: 64 } } });
    call(held);
    const batch = Array.from({ length: 64 }, () => call({ priority: 'batch' }));
    const gone = new Subscriber<Admitted>();
    gone.unsubscribe();
    admission.acquire({ model: 'm', cost: { requests: 1, tokens: 0, explicit: true } }).subscribe(gone);
    runtime.advance(10);
    expect(batch.map(codeOf).filter((code) => code !== undefined)).to.deep.equal([]);
  });

  describe('tells of waiting', () => {
    it('only those that wait here, for as long as a place in the store says nothing', () => {
      start({ quota: { account }, maxInFlight: 1 });
      const told: string[] = [];
      const waits = (name: string): Started => call({ ...held, onQueued: () => void told.push(name) });
      const first = waits('first');
      waits('second');
      runtime.advance(19);
      expect(told).to.deep.equal([]);
      runtime.advance(1);
      expect(told, 'the first one hears from its place').to.deep.equal(['second']);
      route().asks[0]?.queued(1, 10);
      expect(told).to.deep.equal(['second', 'first']);
      route().asks[0]?.grant();
      first.admitted?.release(SUCCESS);
      runtime.advance(50);
      route().asks[1]?.queued(4, 100);
      expect(told, 'once').to.deep.equal(['second', 'first']);
    });
  });

  describe('tells the store what a tenant has and wants', () => {
    const used = (): readonly number[] => store.slotsOf('tenant.acme').used;
    const acme = { ...held, tenant: 'acme' };

    it('as calls are granted, leave and are refused', () => {
      start({ tenants: { acme: { maxInFlight: 5 } }, models: { m: { concurrency: { limit: 1 } } } });
      const first = call(acme);
      expect(used()).to.deep.equal([1, 0]);
      const second = call(acme);
      call({ ...acme, maxWaitMs: 300 });
      expect(used()).to.deep.equal([1, 2]);
      second.subscription.unsubscribe();
      expect(used()).to.deep.equal([1, 1]);
      runtime.advance(301);
      expect(used()).to.deep.equal([1, 0]);
      first.admitted?.release(SUCCESS);
      expect(used()).to.deep.equal([0, 0]);
    });

    it('as what came for one goes to it', () => {
      start({ tenants: { acme: { maxInFlight: 5 } }, quota: { account } });
      call(acme);
      expect(used()).to.deep.equal([0, 1]);
      route().asks[0]?.grant();
      expect(used()).to.deep.equal([1, 0]);
    });
  });

  it('leaves the line of the store where its own bound ends the wait', () => {
    start({ quota: { account } });
    const late = call({ maxWaitMs: 500 });
    const [ask] = route().asks;
    runtime.advance(499);
    expect([ask?.open, codeOf(late)]).to.deep.equal([true, undefined]);
    runtime.advance(1);
    expect([ask?.open, codeOf(late)]).to.deep.equal([false, 'queue_timeout']);
    expect(runtime.pending).to.equal(0);
  });

  it('takes no notice of what the store says to one that has left within the asking', () => {
    start({ quota: { account } });
    call();
    route().answer = (ask) => {
      ask.queued(1);
      ask.refuse(new SluiceError('queue_timeout', 'too late'));
    };
    const errors: unknown[] = [];
    const leaves: Subscriber<Admitted> = new Subscriber({
      next: () => {},
      error: (error: unknown) => void errors.push(error),
      complete: () => {},
    });
    admission
      .acquire({
        model: 'm',
        cost: { requests: 1, tokens: 0, explicit: true },
        onQueued: () => leaves.unsubscribe(),
      })
      .subscribe(leaves);
    expect(errors).to.deep.equal([]);
    expect(admission.snapshot().waiting).to.equal(1);
  });

  describe('takes from its options', () => {
    it('the rules of the quotas, and others when it is reloaded', () => {
      start({ quota: { account: { ...account, settle: 'usage', maxWaiting: 7, maxWaitMs: 900 } } });
      expect(store.rules.get('calls')).to.deep.include({ settle: 'usage', maxWaiting: 7, maxWaitMs: 900 });
      call();
      admission.reload({ quota: { account: { ...account, settle: 'reserved', maxWaiting: 8, maxWaitMs: 800 } } });
      expect([...store.rules.keys()]).to.deep.equal(['calls']);
      expect(store.rules.get('calls')).to.deep.include({ settle: 'reserved', maxWaiting: 8, maxWaitMs: 800 });
      call();
      expect(route().asks.map(({ request: { maxWaitMs } }) => maxWaitMs)).to.deep.equal([900, 800]);
    });

    it('the common bound on waits where they name none', () => {
      start({ quota: { clients: { main: account } } });
      call();
      expect(route('clients.main m').asks[0]?.request.maxWaitMs).to.equal(30_000);
    });
  });

  describe('with a deployment that has run out', () => {
    it('refuses those at once that wait for it', () => {
      start({ maxInFlight: 1 });
      call(held);
      const waits = call(held);
      admission.exhausted('m', 'm', 1000);
      expect(codeOf(waits)).to.equal('circuit_open');
    });

    it('names the field and what there is, where there is none of that name', () => {
      start({ models: { m: {} } });
      expect(() => admission.exhausted('m', 'n', 1000))
        .to.throw('deployment')
        .with.property('code', 'invalid_option');
    });

    it('shows one that nobody has asked for yet as it is known here', () => {
      start();
      admission.exhausted('m', 'm', 1000);
      expect(unavailableMs()).to.equal(1000);
    });
  });

  it('gives back all that is lent when it is closed', () => {
    start({ maxInFlight: 3, tenants: { acme: { maxInFlight: 2 } }, models: { m: { concurrency: { limit: 2 } } } });
    call({ tenant: 'acme' });
    admission.close();
    expect([...store.slots].map(([name, { closed }]) => [name, closed])).to.deep.equal([
      ['deployment.m', true],
      ['calls', true],
      ['tenant.acme', true],
    ]);
  });
});

import { expect } from 'chai';
import fc from 'fast-check';
import type { Subscription } from 'rxjs';
import type { SluiceError } from '../../lib/core/errors.ts';
import { DROPPED, DROPPED_UNSENT, SUCCESS } from '../../lib/core/outcome.ts';
import type { Admitted } from '../../lib/core/ports.ts';
import { Admission } from '../../lib/limits/Admission.ts';
import type { AdmissionOptions } from '../../lib/limits/AdmissionOptions.ts';
import { AdmissionDesk } from '../../lib/operators/AdmissionDesk.ts';
import { admissionSnapshot } from '../../lib/operators/admissionSnapshot.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { failure, left, usage } from '../helpers/admissionBench.ts';
import { hintsOf } from '../helpers/hintsOf.ts';

const OPTIONS: readonly AdmissionOptions[] = [
  { maxInFlight: 2 },
  {
    maxInFlight: 3,
    quota: { account: { requestsPerMinute: 1200, burstRequests: 2, arrivalMarginMs: 0, maxWaiting: 2 } },
    models: {
      m: {
        breaker: { consecutiveFailures: 1, openMs: 60, rampMs: 40, halfOpenMaxMs: 50, halfOpenShare: 1 },
        concurrency: { initial: 2, min: 1, max: 3, growEveryMs: 20 },
      },
      n: { deployments: [{ client: 'a' }, { client: 'b' }], concurrency: { limit: 1 } },
    },
    tenants: { x: { reservedInFlight: 1 }, y: { requestsPerMinute: 600, burstRequests: 1 } },
    priorities: { levels: { batch: { maxInFlight: 1 } } },
  },
];
const OUTCOMES = [
  SUCCESS,
  failure('server_error', { status: 500 }),
  failure('rate_limited', { status: 429, retryAfterMs: 30 }),
  DROPPED,
  DROPPED_UNSENT,
];

/** Has everyone take a place in the queue. */
class Queued extends Admission {
  override admit(ask: Parameters<Admission['ask']>[0]): ReturnType<Admission['ask']> {
    return this.ask(ask);
  }
}

interface Ask {
  readonly model: string;
  readonly tenant: string | undefined;
  readonly priority: string | undefined;
  readonly tokens: number;
  readonly maxWaitMs: number | undefined;
  readonly within: 'keeps' | 'releases' | 'asks' | 'asks and releases';
}

/** Everything that a desk tells anyone, in its order. */
class Told {
  readonly runtime = virtualRuntime();
  readonly log: unknown[] = [];
  readonly admitted: Admitted[] = [];
  readonly subscriptions: Subscription[] = [];
  readonly desk: AdmissionDesk;
  #asked = 0;

  constructor(make: typeof Admission, options: AdmissionOptions) {
    const machine = new make(options, this.runtime.clock, this.runtime.random);
    this.desk = new AdmissionDesk(machine, this.runtime, (fact) => this.log.push(fact));
  }

  ask({ tokens, within, ...request }: Ask): void {
    const name = this.#asked++;
    const tell =
      (what: string) =>
      (...told: unknown[]): void =>
        void this.log.push([name, what, ...told]);
    const subscription = this.desk
      .acquire({
        ...request,
        cost: { requests: 1, tokens, explicit: false },
        onQueued: tell('queued'),
        onFact: tell('fact'),
        onSettled: tell('settled'),
        onCooldown: tell('cooldown'),
      })
      .subscribe({
        next: (admitted) => {
          const { waitedMs, deployment, reservedTokens } = admitted;
          this.log.push([name, 'goes', this.runtime.clock.now(), waitedMs, deployment, reservedTokens]);
          this.admitted.push(admitted);
          admitted.onRevoke(({ code }) => tell('revoked')(code));
          if (within.startsWith('asks')) this.ask({ ...request, tokens, within: 'keeps' });
          if (within.endsWith('releases')) admitted.release(SUCCESS);
          this.log.push([name, 'has gone']);
        },
        error: ({ code, retryAfterMs, while: stage }: SluiceError) => tell('fails')(code, retryAfterMs, stage),
        complete: tell('completes'),
      });
    this.subscriptions.push(subscription);
  }

  shown(): unknown {
    const { runtime, desk } = this;
    return [this.log.splice(0), runtime.pending, admissionSnapshot(desk.machine, runtime.clock.now())];
  }
}

const ask: fc.Arbitrary<Ask> = fc.record({
  model: fc.constantFrom('m', 'n', 'other'),
  tenant: fc.constantFrom(undefined, 'x', 'y'),
  priority: fc.constantFrom(undefined, 'batch'),
  tokens: fc.constantFrom(0, 10, 500),
  maxWaitMs: fc.constantFrom(undefined, 0, 30),
  within: fc.constantFrom('keeps', 'keeps', 'keeps', 'releases', 'asks', 'asks and releases'),
});
const deed = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('ask' as const), ask }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constantFrom('dispatched', 'hears', 'ends', 'releases', 'releases', 'releases', 'leaves'),
      at: fc.nat(10),
      outcome: fc.constantFrom(0, 0, 0, 1, 2, 3, 4),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('passes' as const), ms: fc.constantFrom(1, 20, 100) }) },
);

describe('AdmissionDesk at once', () => {
  it('tells everyone the same, in the same order, as if all had taken a place in the queue', () => {
    const same = fc.property(fc.constantFrom(...OPTIONS), fc.array(deed, { maxLength: 50 }), (options, deeds) => {
      const [queued, direct] = [new Told(Queued, options), new Told(Admission, options)];
      for (const step of deeds) {
        for (const side of [queued, direct]) {
          if (step.kind === 'ask') side.ask(step.ask);
          else if (step.kind === 'passes') side.runtime.advance(step.ms);
          else act(side, step);
        }
        expect(direct.shown()).to.deep.equal(queued.shown());
      }
    });
    fc.assert(same, { numRuns: 200 });
  });
});

function act(
  { admitted, subscriptions }: Told,
  { kind, at, outcome }: { readonly kind: string; readonly at: number; readonly outcome: number },
): void {
  if (kind === 'leaves') return subscriptions[at % (subscriptions.length || 1)]?.unsubscribe();
  const one = admitted[at % (admitted.length || 1)];
  const end = OUTCOMES[outcome] ?? SUCCESS;
  if (one === undefined) return;
  if (end !== DROPPED_UNSENT) one.dispatched(at % 2 === 0);
  if (kind === 'hears') {
    one.sent?.();
    one.responded(200);
    one.observe(
      hintsOf({ retryAfterMs: outcome === 2 ? 25 : undefined, requests: outcome === 1 ? left(0) : undefined }),
    );
    one.settle(usage(at * 20));
    one.firstContent();
  } else if (kind === 'ends') one.end(end, 10);
  else if (kind === 'releases') {
    one.release(end, 10);
    admitted.splice(admitted.indexOf(one), 1);
  }
}

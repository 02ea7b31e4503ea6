import { expect } from 'chai';
import { SluiceError } from '../../lib/core/errors.ts';
import type { ErrorCode } from '../../lib/core/errors.ts';
import type { AdmissionRequest } from '../../lib/core/ports.ts';
import { Admission } from '../../lib/limits/Admission.ts';
import type { AdmissionOptions } from '../../lib/limits/AdmissionOptions.ts';
import type { AdmissionTicket } from '../../lib/limits/AdmissionPool.ts';
import { localPart } from '../../lib/operators/shared/localPart.ts';
import type { Credit } from '../../lib/operators/shared/SharedLine.ts';
import { SharedPlaces } from '../../lib/operators/shared/SharedPlaces.ts';
import type { SharedTarget } from '../../lib/operators/shared/SharedTarget.ts';
import { SharedTargets } from '../../lib/operators/shared/SharedTargets.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { ScriptedStore } from './scriptedStore.ts';
import type { ScriptedAsk, ScriptedRoute } from './scriptedStore.ts';

export interface BenchWait extends Partial<Omit<AdmissionRequest, 'cost'>> {
  readonly tokens?: number;
  readonly requests?: number;
}

export const requestRate = { requestsPerMinute: 60 };
export const tokenRate = { tokensPerMinute: 6000 };

export const storeSays = (code: ErrorCode = 'queue_timeout'): SluiceError => new SluiceError(code, 'of the store');

/** The places of one process in the lines of a store that does what a test says. */
export class PlacesBench {
  readonly runtime: VirtualRuntime = virtualRuntime();
  readonly store: ScriptedStore = new ScriptedStore();
  readonly machine: Admission;
  readonly targets: SharedTargets;
  readonly places: SharedPlaces;
  readonly refused: [AdmissionTicket, SluiceError][] = [];
  serves = 0;

  constructor(options: AdmissionOptions = { quota: { account: requestRate } }) {
    const { clock, random } = this.runtime;
    this.machine = new Admission(localPart(options), clock, random);
    const limits = this.store.connect();
    const parts = { store: limits, quotas: limits.quotas('calls', {}), clock, changed: () => {} };
    this.targets = new SharedTargets(this.machine, options, parts);
    this.places = new SharedPlaces({
      clock,
      machine: this.machine,
      targetsOf: ({ pool }) => this.targets.of(pool),
      serve: () => this.serves++,
      refuse: (ticket, error) => {
        this.refused.push([ticket, error]);
        this.places.leave(ticket);
      },
    });
  }

  reload(options: AdmissionOptions): void {
    this.machine.reload(localPart(options));
    this.targets.reload(options);
    this.places.rearrange();
  }

  /** Comes now. Its own bound ends its wait after `maxWaitMs`, a minute by default. */
  wait({ requests = 1, tokens = 0, maxWaitMs = 60_000, ...more }: BenchWait = {}): AdmissionTicket {
    const request = { model: 'm', ...more, maxWaitMs, cost: { requests, tokens, explicit: true } };
    const ticket = this.machine.ask(request);
    if (ticket.kind !== 'ticket') throw new Error(ticket.code);
    this.targets.know(ticket.pool, request.model);
    this.places.join({
      ticket,
      request,
      untilMs: this.runtime.clock.now() + maxWaitMs,
      places: new Map(),
      refused: new Map(),
      restUntilMs: -Infinity,
      told: false,
    });
    return ticket;
  }

  targetOf(ticket: AdmissionTicket): SharedTarget {
    return this.targets.of(ticket.pool)[0] as SharedTarget;
  }

  route(names = 'account m'): ScriptedRoute {
    return this.store.routeOf(names);
  }

  ask(at = 0, names?: string): ScriptedAsk {
    return this.route(names).asks[at] as ScriptedAsk;
  }

  /** `ticket` goes at the first deployment. */
  take(ticket: AdmissionTicket): Credit | undefined {
    this.machine.cancel(ticket);
    return this.places.take(ticket, this.targetOf(ticket));
  }

  /** As one does who has seen to what has come. */
  arrange(): number {
    expect(this.places.came).to.be.a('boolean');
    return this.places.arrange();
  }
}

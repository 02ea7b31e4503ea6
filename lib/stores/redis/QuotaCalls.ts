import type { OpReply, QuotaReply, RouteOp } from './QuotaCall.ts';
import type { RouteAsk } from './quotaCallOf.ts';
import type { Decision } from './QuotaDecider.ts';
import type { RoutePlan } from './QuotaLayers.ts';

export interface CallsHost {
  /** Adds what is worth asking whenever something is asked. */
  beforeCall(): void;
  /** Whether a call is worth making though nothing is asked. */
  readonly dueAnyway: boolean;
  decide(asks: readonly RouteAsk[]): Decision;
  heard(decision: Decision, reply: QuotaReply): void;
  /** Nothing more is under way or was asked for. */
  afterCalls(): void;
}

interface Queued extends RouteAsk {
  readonly hear: (reply: OpReply) => void;
  /** Whether it is still wanted when it is sent. */
  readonly wanted: () => boolean;
}

const ignore = (): void => {};
const always = (): boolean => true;

/** One call under way at a time: what comes in the meantime goes together in the next one. */
export class QuotaCalls {
  readonly #host: CallsHost;
  #queued: Queued[] = [];
  #busy = false;
  #again = false;
  #epoch = 0;

  constructor(host: CallsHost) {
    this.#host = host;
  }

  /** Whether an answer is awaited. */
  get busy(): boolean {
    return this.#busy;
  }

  /** It goes with the next call. */
  add(plan: RoutePlan, op: RouteOp, hear: Queued['hear'] = ignore, wanted: Queued['wanted'] = always): void {
    this.#queued.push({ plan, op, hear, wanted });
  }

  send(): void {
    this.#again = true;
    if (this.#busy) return;
    this.#busy = true;
    this.#run();
  }

  /** Forgets what was asked and not answered. */
  reset(): void {
    this.#epoch++;
    this.#queued = [];
    this.#busy = this.#again = false;
  }

  #run(): void {
    const epoch = this.#epoch;
    // A loop: what decides at once would overflow the stack.
    while (this.#again) {
      this.#again = false;
      this.#host.beforeCall();
      const sent = this.#queued.filter(({ wanted }) => wanted());
      this.#queued = [];
      if (sent.length === 0 && !this.#host.dueAnyway) continue;
      const decision = this.#host.decide(sent);
      if (decision.reply instanceof Promise) {
        void decision.reply.then((late) => {
          if (epoch !== this.#epoch || late === undefined) return;
          this.#hear(epoch, decision, sent, late);
          if (epoch === this.#epoch) this.#run();
        });
        return;
      }
      this.#hear(epoch, decision, sent, decision.reply);
      if (epoch !== this.#epoch) return;
    }
    this.#busy = false;
    this.#host.afterCalls();
  }

  #hear(epoch: number, decision: Decision, sent: readonly Queued[], reply: QuotaReply): void {
    this.#host.heard(decision, reply);
    sent.forEach(({ hear }, i) => {
      if (epoch === this.#epoch) hear(reply[5][i] ?? [0]);
    });
  }
}

import type { OpReply, QuotaOp, QuotaReply } from './QuotaCall.ts';

export interface CallsHost {
  /** Adds what is worth asking whenever something is asked. */
  beforeCall(): void;
  decide(ops: readonly QuotaOp[]): QuotaReply | Promise<QuotaReply | undefined>;
  heard(reply: QuotaReply): void;
  /** Nothing more is under way or was asked for. */
  afterCalls(): void;
}

interface Queued {
  readonly op: QuotaOp;
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
  add(op: QuotaOp, hear: Queued['hear'] = ignore, wanted: Queued['wanted'] = always): void {
    this.#queued.push({ op, hear, wanted });
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
      if (sent.length === 0) continue;
      const reply = this.#host.decide(sent.map(({ op }) => op));
      if (reply instanceof Promise) {
        void reply.then((late) => {
          if (epoch !== this.#epoch || late === undefined) return;
          this.#hear(epoch, sent, late);
          if (epoch === this.#epoch) this.#run();
        });
        return;
      }
      this.#hear(epoch, sent, reply);
      if (epoch !== this.#epoch) return;
    }
    this.#busy = false;
    this.#host.afterCalls();
  }

  #hear(epoch: number, sent: readonly Queued[], reply: QuotaReply): void {
    this.#host.heard(reply);
    sent.forEach(({ hear }, i) => {
      if (epoch === this.#epoch) hear(reply[5][i] ?? [0]);
    });
  }
}

import type { SluiceError } from '../../core/errors.ts';
import type { Outcome } from '../../core/outcome.ts';
import type { AcquireRequest } from '../../core/ports.ts';
import { RevocablePass } from '../../core/RevocablePass.ts';
import type { BreakerTicket } from '../../limits/CircuitBreaker.ts';

/** A pass that is out. */
export interface HeldPass {
  readonly pass: RevocablePass;
  readonly request: AcquireRequest;
  /** That of the store when it was given; 0 for one that this process gave by itself while the store was lost. */
  readonly epoch: number;
  /** Of a probe; else empty. */
  readonly id: string;
  content: boolean;
  /** Of the breaker that stands in for the store while that is lost. */
  ticket: BreakerTicket | undefined;
}

export interface PassesDesk {
  firstContent(held: HeldPass): void;
  released(held: HeldPass, outcome: Outcome): void;
  /** There are fewer that wait for something. */
  moved(): void;
}

/** The passes of a shared breaker that this process has out. */
export class BreakerPasses {
  readonly #desk: PassesDesk;
  readonly #held = new Set<HeldPass>();
  readonly #unsent = new Set<HeldPass>();
  readonly #probes = new Set<HeldPass>();

  constructor(desk: PassesDesk) {
    this.#desk = desk;
  }

  get all(): Iterable<HeldPass> {
    return this.#held;
  }

  get none(): boolean {
    return this.#held.size === 0;
  }

  /** Whether attempts have not been sent yet. */
  get waiting(): boolean {
    return this.#unsent.size > 0;
  }

  /** Whether there are probes of that epoch. */
  probing(epoch: number): boolean {
    for (const probe of this.#probes) if (probe.epoch === epoch) return true;
    return false;
  }

  give(request: AcquireRequest, epoch: number, id: string, ticket: BreakerTicket | undefined): RevocablePass {
    const pass = new RevocablePass(request.model, {
      settled: () => this.#unsent.delete(held),
      firstContent: () => {
        held.content = true;
        this.#desk.firstContent(held);
      },
      moved: () => this.#desk.moved(),
      release: (outcome) => {
        this.#held.delete(held);
        this.#probes.delete(held);
        this.#desk.released(held, outcome);
      },
    });
    const held: HeldPass = { pass, request, epoch, id, content: false, ticket };
    this.#held.add(held);
    this.#unsent.add(held);
    if (id !== '') this.#probes.add(held);
    return pass;
  }

  /** Those that must not be used any more, but for those of that epoch. Newer ones may be made before they hear of it. */
  doom(but: number | undefined, refusal: (model: string | undefined) => SluiceError): readonly RevocablePass[] {
    const doomed = [...this.#unsent].filter(({ epoch }) => epoch !== but);
    for (const held of doomed) {
      this.#unsent.delete(held);
      held.pass.doom(refusal(held.pass.model));
    }
    return doomed.map(({ pass }) => pass);
  }
}

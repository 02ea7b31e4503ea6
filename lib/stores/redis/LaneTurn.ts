import type { Subscriber } from 'rxjs';
import type { HeapNode } from '../../core/Heap.ts';
import type { SluiceError } from '../../core/errors.ts';
import type { LanePlace, LaneRequest } from '../../core/ports.ts';
import type { TurnBound } from '../../limits/Lane.ts';

/** A turn of this process in a lane that processes share. Changed by the desk and its {@link LaneTurns} only. */
export class LaneTurn {
  readonly subscriber: Subscriber<LanePlace>;
  readonly request: LaneRequest;
  readonly lane: string;
  readonly bound: TurnBound;
  readonly enteredAtMs: number;
  /** `asked`: for a place; `waiting`: has one; `held`: has the lane; `over`. */
  state: 'asked' | 'waiting' | 'held' | 'over' = 'asked';
  /** Its place in the store; 0: none that is known. */
  order = 0;
  /** Once it holds the lane. */
  token = 0;
  startedAtMs = 0;
  /** Turns of this process that were in the lane when it came. */
  before = 0;
  /** Turns that wait before it, of all processes. */
  position = 0;
  /** Whether one of another process is before it: then only the store can tell when that has ended. */
  foreign = false;
  expiry: HeapNode<LaneTurn> | undefined;
  #lost: SluiceError | undefined;
  #tell: ((error: SluiceError) => void) | undefined;

  constructor(
    subscriber: Subscriber<LanePlace>,
    request: LaneRequest,
    lane: string,
    bound: TurnBound,
    enteredAtMs: number,
  ) {
    this.subscriber = subscriber;
    this.request = request;
    this.lane = lane;
    this.bound = bound;
    this.enteredAtMs = enteredAtMs;
  }

  onLost(tell: (error: SluiceError) => void): void {
    if (this.#lost) tell(this.#lost);
    else this.#tell = tell;
  }

  /** It had started, and must end. */
  lose(error: SluiceError): void {
    this.#lost = error;
    this.#tell?.(error);
  }
}

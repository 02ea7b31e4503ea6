import { Observable } from 'rxjs';
import type { Subscription } from 'rxjs';
import { runInScope } from '../core/currentScope.ts';
import { runAtPace } from '../core/pace.ts';
import { startTimer } from '../core/runtime.ts';
import type { Cancel, Runtime } from '../core/runtime.ts';
import type { AnswerPart } from '../operators/answerPart.ts';
import type { AnswerEvent } from './AnswerEvent.ts';
import { failureBody } from './httpFailure.ts';
import type { MessageOf } from './httpFailure.ts';
import type { ReplayLog } from './ReplayLog.ts';
import { toAnswerEvents } from './toAnswerEvents.ts';

/** What a {@link ReplayRun} tells the one that keeps it. */
export interface ReplayHooks {
  /** An event took up so many bytes. */
  added(run: ReplayRun, bytes: number): void;
  /** Nobody has read it for `keepMs`, or it failed before there was anything to read. */
  forgotten(run: ReplayRun): void;
}

/** One call to a provider, with all that read its answer. */
export class ReplayRun {
  readonly log: ReplayLog;
  readonly owner: string | undefined;
  readonly key: string | undefined;
  readonly #keepMs: number;
  readonly #runtime: Runtime;
  readonly #messageOf: MessageOf | undefined;
  readonly #hooks: ReplayHooks;
  readonly #readers = new Set<{ pump(): void; fail(error: unknown): void }>();
  #call: Subscription | undefined;
  #stopKeeping: Cancel = () => {};
  #released = false;

  constructor(
    log: ReplayLog,
    { owner, key }: { readonly owner: string | undefined; readonly key: string | undefined },
    settings: { readonly keepMs: number; readonly runtime: Runtime; readonly messageOf: MessageOf | undefined },
    hooks: ReplayHooks,
  ) {
    this.log = log;
    this.owner = owner;
    this.key = key;
    this.#keepMs = settings.keepMs;
    this.#runtime = settings.runtime;
    this.#messageOf = settings.messageOf;
    this.#hooks = hooks;
  }

  get readers(): number {
    return this.#readers.size;
  }

  /** Asks the provider. At no reader's pace: there may be several, and what they have not read is kept here. */
  start(answer$: Observable<AnswerPart | AnswerEvent>): void {
    this.#call = runInScope(undefined, () =>
      runAtPace(undefined, () =>
        answer$.pipe(toAnswerEvents()).subscribe({
          next: (event) => this.#add(event),
          error: (error: unknown) => this.fail(error),
        }),
      ),
    );
    if (this.log.over) this.#call.unsubscribe();
  }

  /** The events after number `seen`: those that came, then those that come. */
  read(seen: number): Observable<AnswerEvent> {
    // Hand-written: each reader goes through the log at its own place, and holds nothing of its own.
    return new Observable<AnswerEvent>((subscriber) => {
      let at = seen;
      let pumping = false;
      const reader = {
        pump: (): void => {
          if (pumping) return;
          pumping = true;
          while (at < this.log.last && !subscriber.closed) {
            const event = this.log.at(++at);
            if (event) subscriber.next(event);
          }
          pumping = false;
          if (this.log.over && at >= this.log.last) subscriber.complete();
        },
        fail: (error: unknown) => subscriber.error(error),
      };
      this.#stopKeeping();
      this.#readers.add(reader);
      subscriber.add(() => {
        this.#readers.delete(reader);
        if (this.#readers.size === 0) this.#keep();
      });
      reader.pump();
    });
  }

  /** Ends it with a failure, which whoever reads is told. */
  fail(error: unknown): void {
    if (this.log.over) return;
    this.#call?.unsubscribe();
    if (this.log.last > 0) {
      this.#add({ type: 'failure', data: failureBody(error, this.#messageOf) });
      return;
    }
    const readers = [...this.#readers];
    this.release();
    this.#hooks.forgotten(this);
    for (const reader of readers) reader.fail(error);
  }

  /** Ends it without a word. The call to the provider is aborted. */
  release(): void {
    this.#call?.unsubscribe();
    this.#stopKeeping();
    this.#released = true;
  }

  #add(event: AnswerEvent): void {
    const bytes = this.log.add(event);
    for (const reader of [...this.#readers]) reader.pump();
    // Last: what was just read may be dropped to make room.
    this.#hooks.added(this, bytes);
  }

  #keep(): void {
    if (this.#released) return;
    this.#stopKeeping = startTimer(this.#runtime, this.#keepMs, () => {
      this.release();
      this.#hooks.forgotten(this);
    });
  }
}

import { Observable } from 'rxjs';
import type { AttemptSource, WireEvent } from '../../../lib/core/attempt.ts';
import type { AttemptTrace } from './Fact.ts';
import { contentOf } from './contentOf.ts';
import type { StallingRuntime } from './StallingRuntime.ts';
import type { World } from './World.ts';

export interface SourceWitness {
  sent(client: string, process: number, request: AttemptTrace['request']): AttemptTrace;
  closed(attempt: AttemptTrace): void;
}

/** Transports of one process, each of them watched. */
export function watchedSources(
  sources: Readonly<Record<string, AttemptSource>>,
  runtime: StallingRuntime,
): World['connect'] {
  return (process, witness, sabotage) => {
    const clients = Object.entries(sources).map(([name, source]) => {
      const watched = watchedSource(source, [name, process], witness, runtime);
      return [name, sabotage.source?.(watched) ?? watched] as const;
    });
    return { clients: Object.fromEntries(clients) };
  };
}

/** A transport that tells what passes through it. What comes while the process stands still is passed on afterwards. */
function watchedSource(
  source: AttemptSource,
  [client, process]: readonly [client: string, process: number],
  witness: SourceWitness,
  runtime: StallingRuntime,
): AttemptSource {
  // Hand-written: what is held back during a stall has to be dropped by an unsubscribe in the same tick.
  return (attempt) =>
    new Observable<WireEvent>((subscriber) => {
      const trace = witness.sent(client, process, attempt.request);
      const close = (): void => {
        if (trace.closedMs !== undefined) return;
        witness.closed(trace);
      };
      const inner = source(attempt).subscribe({
        next: (event) => {
          runtime.whenRunning(() => {
            if (subscriber.closed) return;
            if (event.kind === 'data') trace.text += contentOf(event.value);
            subscriber.next(event);
          });
        },
        error: (error: unknown) => {
          runtime.whenRunning(() => {
            if (!subscriber.closed) close();
            subscriber.error(error);
          });
        },
        complete: () => {
          runtime.whenRunning(() => {
            if (!subscriber.closed) close();
            subscriber.complete();
          });
        },
      });
      return () => {
        close();
        inner.unsubscribe();
      };
    });
}

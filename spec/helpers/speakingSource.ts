import { Observable } from 'rxjs';
import { currentScope } from '../../lib/core/currentScope.ts';
import type { CallScope } from '../../lib/core/CallScope.ts';
import { startTimer } from '../../lib/core/runtime.ts';
import type { Runtime } from '../../lib/core/runtime.ts';

export interface SpeakingOptions {
  /** From the end or unsubscribe to where nothing runs any more. `Infinity`: never. Default: 0, at once. */
  readonly closesAfterMs?: number;
  /** Gets the scope that the source speaks to. */
  readonly onScope?: (scope: CallScope) => void;
}

/** `body`, from a source that tells its scope when it is sent and when it has closed, as the transports do. */
export function speakingSource<T>(runtime: Runtime, body: Observable<T>, options: SpeakingOptions = {}): Observable<T> {
  const { closesAfterMs = 0, onScope } = options;
  return new Observable<T>((subscriber) => {
    const scope = currentScope();
    if (scope === undefined) throw new Error('a source was subscribed to outside every call');
    onScope?.(scope);
    scope.dispatched(runtime.clock.now());
    subscriber.add(() => {
      if (closesAfterMs === 0) scope.closed();
      else startTimer(runtime, closesAfterMs, () => scope.closed());
    });
    return body.subscribe(subscriber);
  });
}

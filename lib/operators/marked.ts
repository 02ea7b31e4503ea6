import { concat, defer, EMPTY, mergeMap, of } from 'rxjs';
import type { Observable } from 'rxjs';
import type { ErrorCode } from '../core/errors.ts';
import { restart } from '../core/restart.ts';
import type { Restart } from '../core/restart.ts';

/**
 * `source` behind a restart marker. The marker waits for the first value, or for the end without one: until then the
 * consumer may keep what it has, and keeps it if `source` fails too.
 */
export function marked<T>(
  source: Observable<T>,
  code: ErrorCode,
  model: string | undefined,
  onMarked: () => void,
): Observable<T | Restart> {
  return defer(() => {
    let told = false;
    const tell = (): Restart => {
      told = true;
      onMarked();
      return restart(code, model);
    };
    return concat(
      source.pipe(mergeMap((value) => (told ? of(value) : of<[Restart, T]>(tell(), value)))),
      defer(() => (told ? EMPTY : of(tell()))),
    );
  });
}

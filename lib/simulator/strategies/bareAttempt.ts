import { Observable } from 'rxjs';
import type { Attempt } from '../../core/attempt.ts';
import type { SimulatedCall } from '../load/CallDrawer.ts';
import type { World } from './Strategy.ts';

/**
 * One request as the SDK makes it: every chunk is passed on as it comes, and a body that ends is an answer, whether or
 * not it is whole.
 */
export function bareAttempt(
  world: World,
  call: SimulatedCall,
  model: string = call.model,
  more: object = {},
): Observable<unknown> {
  const source = world.sources[world.clientOf(model)];
  const attempt: Attempt = {
    api: 'chat',
    request: { ...call.request, model, stream: true, ...more },
    headers: {},
    stream: true,
    demand: undefined,
  };
  return new Observable((subscriber) =>
    source?.(attempt).subscribe({
      next: (event) => {
        if (event.kind === 'data') subscriber.next(event.value);
        // The SDK stops reading there.
        if (event.kind === 'done') subscriber.complete();
      },
      error: (error: unknown) => subscriber.error(error),
      complete: () => subscriber.complete(),
    }),
  );
}

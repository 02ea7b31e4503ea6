import { Subject, takeUntil } from 'rxjs';
import type { Observable } from 'rxjs';
import { runInScope } from '../core/currentScope.ts';
import { runAtPace } from '../core/pace.ts';
import type { AnswerPart } from '../operators/answerPart.ts';
import type { AnswerEvent } from './AnswerEvent.ts';
import { Delivery } from './Delivery.ts';
import type { Outlet } from './Delivery.ts';
import type { DeliveryReport, DeliverySettings } from './DeliveryOptions.ts';
import { encodingOf } from './EventEncoding.ts';
import { toAnswerEvents } from './toAnswerEvents.ts';

/**
 * Subscribes to an answer for a client. `onEnd` hears once how it ended; the source has been unsubscribed from by then.
 */
export function deliver(
  answer$: Observable<AnswerPart | AnswerEvent>,
  outlet: Outlet,
  settings: DeliverySettings,
  onEnd: (report: DeliveryReport) => void,
): Delivery {
  const stop$ = new Subject<void>();
  const delivery = new Delivery(outlet, encodingOf(settings), settings, (report) => {
    stop$.next();
    onEnd(report);
  });
  // In no frame: what a request answers with is a call of its own, whoever handles the request.
  runInScope(undefined, () =>
    runAtPace(delivery.demand, () =>
      answer$.pipe(toAnswerEvents(), takeUntil(stop$)).subscribe({
        next: (event) => guarded(delivery, () => delivery.next(event)),
        error: (error: unknown) => guarded(delivery, () => delivery.fail(error)),
        complete: () => guarded(delivery, () => delivery.complete()),
      }),
    ),
  );
  return delivery;
}

/** What a server's own code throws, such as an event with an id of two lines, ends the stream and not the process. */
function guarded(delivery: Delivery, work: () => void): void {
  try {
    work();
  } catch (error) {
    delivery.broke(error);
  }
}

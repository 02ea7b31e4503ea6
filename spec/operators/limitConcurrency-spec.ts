import { NEVER } from 'rxjs';
import { guardingOperatorContract } from '../contract/guardingOperator.ts';
import { createConcurrencyLimit } from '../../lib/operators/createConcurrencyLimit.ts';
import { limitConcurrency } from '../../lib/operators/limitConcurrency.ts';

describe('limitConcurrency', () => {
  guardingOperatorContract((runtime) => {
    const limit = createConcurrencyLimit({ limit: 1, maxWaiting: Infinity }, runtime);
    return {
      guard: (onEvent) => limitConcurrency(limit, { onEvent, runtime }),
      fill: () => {
        const running = NEVER.pipe(limitConcurrency(limit, { runtime })).subscribe();
        return () => running.unsubscribe();
      },
      held: () => limit.snapshot().inFlight,
      waiting: () => limit.snapshot().waiting,
    };
  });
});

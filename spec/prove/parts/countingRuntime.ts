import { systemRuntime } from '../../../lib/index.ts';
import type { Runtime } from '../../../lib/index.ts';

/** Real time that counts the timers which have neither fired nor been cancelled. */
export function countingRuntime(): Runtime & { readonly pending: number } {
  let pending = 0;
  return {
    ...systemRuntime,
    get pending() {
      return pending;
    },
    scheduler: {
      schedule(work, delayMs) {
        let open = true;
        const close = (): void => {
          if (open) pending--;
          open = false;
        };
        pending++;
        const timer = systemRuntime.scheduler.schedule(() => {
          close();
          work();
        }, delayMs);
        return {
          unsubscribe() {
            close();
            timer.unsubscribe();
          },
        };
      },
    },
  };
}

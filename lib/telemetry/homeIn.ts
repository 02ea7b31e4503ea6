import { context } from '@opentelemetry/api';
import type { Context } from '@opentelemetry/api';
import type { Home } from '../core/CallObserver.ts';

/** Runs in `home`. Where that is active anyway, as it is for most values, entering it again would only cost time. */
export function homeIn(home: Context): Home {
  return (work, argument) =>
    context.active() === home ? work(argument) : context.with(home, work, undefined, argument);
}

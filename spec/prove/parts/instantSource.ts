import { Observable } from 'rxjs';
import type { AttemptSource } from '../../../lib/core/attempt.ts';
import { currentScope } from '../../../lib/core/currentScope.ts';

const choice = { index: 0, delta: { content: 'ok' }, finish_reason: 'stop' };

/** A transport that answers in the next tick, without a network: what is measured over it is all the client's own. */
export const instantSource: AttemptSource = () =>
  new Observable((subscriber) => {
    const scope = currentScope();
    scope?.dispatched(performance.now());
    const timer = setImmediate(() => {
      subscriber.next({ kind: 'head', status: 200, requestId: undefined, hints: undefined });
      subscriber.next({ kind: 'data', value: { id: 'c', choices: [choice] }, event: undefined });
      subscriber.next({ kind: 'done' });
      subscriber.complete();
    });
    return () => {
      clearImmediate(timer);
      scope?.closed();
    };
  });

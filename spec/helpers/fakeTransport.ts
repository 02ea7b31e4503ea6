import { Observable } from 'rxjs';
import type { Subscriber } from 'rxjs';
import type { Attempt, AttemptSource, WireEvent } from '../../lib/core/attempt.ts';
import type { CallScope } from '../../lib/core/CallScope.ts';
import { currentScope } from '../../lib/core/currentScope.ts';
import type { Runtime } from '../../lib/core/runtime.ts';

/** One subscription to a {@link FakeTransport}, driven by the test. */
export interface FakeExchange {
  readonly attempt: Attempt;
  readonly scope: CallScope;
  readonly left: boolean;
  head(status?: number): void;
  data(...values: readonly unknown[]): void;
  comment(): void;
  done(): void;
  complete(): void;
  error(error: unknown): void;
}

export interface FakeTransport {
  readonly source: AttemptSource;
  readonly exchanges: readonly FakeExchange[];
  /** The latest one. */
  readonly last: FakeExchange;
}

/** A transport that sends nothing: the test says what comes off the wire, and when. */
export function fakeTransport(runtime: Runtime): FakeTransport {
  const exchanges: FakeExchange[] = [];
  const source: AttemptSource = (attempt) =>
    new Observable((subscriber) => {
      const scope = currentScope() as CallScope;
      const exchange = fakeExchange(attempt, scope, subscriber);
      exchanges.push(exchange);
      scope.dispatched(runtime.clock.now());
      return () => scope.closed();
    });
  return {
    source,
    exchanges,
    get last() {
      return exchanges.at(-1) as FakeExchange;
    },
  };
}

function fakeExchange(attempt: Attempt, scope: CallScope, subscriber: Subscriber<WireEvent>): FakeExchange {
  return {
    attempt,
    scope,
    get left() {
      return subscriber.closed;
    },
    head: (status = 200) => subscriber.next({ kind: 'head', status, requestId: 'r1', hints: undefined }),
    data: (...values) => {
      for (const value of values) subscriber.next({ kind: 'data', value, event: undefined });
    },
    comment: () => subscriber.next({ kind: 'comment' }),
    done: () => subscriber.next({ kind: 'done' }),
    complete: () => subscriber.complete(),
    error: (error) => subscriber.error(error),
  };
}

import { Observable } from 'rxjs';
import { attemptStream, CallScope, createSluice, runInScope, systemRuntime } from '../../../lib/index.ts';
import type { AttemptSource, Sluice, WireEvent } from '../../../lib/index.ts';
import { currentScope } from '../../../lib/core/currentScope.ts';
import { chatReads } from './chatReads.ts';
import { fullOptions, fullPolicy, request } from './fullPolicy.ts';

export const TRANSPORT = 'the transport alone';
export const ATTEMPT = '`attemptStream`';
export const LEAN = '`createSluice`, empty policy';
export const WHOLE = '`createSluice`, full policy';

export type StackWay = typeof TRANSPORT | typeof ATTEMPT | typeof LEAN | typeof WHOLE;

/** One streamed call of so many chunks by each way, over a transport that has everything parsed and there at once. */
export function stackWays(chunks: number): Record<StackWay, () => void> {
  const source = transport(chunks);
  const attempt = { api: 'chat', request: { ...request, stream: true }, headers: {}, stream: true } as const;
  const alone$ = source({ ...attempt, demand: undefined });
  const attempt$ = attemptStream(source, { api: 'chat', request, stream: true });
  const lean: Sluice = createSluice(source, {});
  const whole: Sluice = createSluice(source, fullPolicy);
  return {
    [TRANSPORT]: () => inCall(alone$),
    [ATTEMPT]: () => inCall(attempt$),
    [LEAN]: () => callOnce(lean.chat(request)),
    [WHOLE]: () => callOnce(whole.chat(request, fullOptions)),
  };
}

/** In a frame of its own, as every client makes one. */
export function inCall(source: Observable<unknown>): void {
  runInScope(CallScope.start(systemRuntime), () => callOnce(source));
}

function callOnce(source: Observable<unknown>): void {
  let ended = false;
  source.subscribe({
    next: () => {},
    error: (error: unknown) => {
      throw error;
    },
    complete: () => (ended = true),
  });
  if (!ended) throw new Error('a source that is there at once must end at once');
}

function transport(chunks: number): AttemptSource {
  const texts = chatReads({ shape: 'long', chunks, usage: true }).map((bytes) => new TextDecoder().decode(bytes));
  const data = texts.slice(0, -1).map((text): WireEvent => {
    const json = text.slice('data: '.length, -2);
    return { kind: 'data', value: JSON.parse(json), event: undefined, size: json.length };
  });
  const head: WireEvent = { kind: 'head', status: 200, requestId: 'req_8a1f0c7e', hints: undefined };
  const events: readonly WireEvent[] = [head, ...data, { kind: 'done' }];
  // Hand-written: RxJS's own would be measured with it.
  return () =>
    new Observable((subscriber) => {
      const scope = currentScope();
      scope?.dispatched(systemRuntime.clock.now());
      for (const event of events) subscriber.next(event);
      subscriber.complete();
      scope?.closed();
    });
}

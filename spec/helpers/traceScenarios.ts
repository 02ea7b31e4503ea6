import { context, trace } from '@opentelemetry/api';
import type { Tracer } from '@opentelemetry/api';
import { createSluice } from '../../lib/client/createSluice.ts';
import type { Sluice } from '../../lib/client/Sluice.ts';
import type { CallObserver } from '../../lib/core/CallObserver.ts';
import type { PolicyInput } from '../../lib/policy/PolicyInput.ts';
import { virtualRuntime } from '../../lib/testing/index.ts';
import type { VirtualRuntime } from '../../lib/testing/index.ts';
import { fakeProvider } from './fakeProvider.ts';
import type { Reply } from './fakeProvider.ts';

/** Calls in virtual time, each time the same. Every one is under a span of its own caller. */
export interface TraceScenario {
  readonly name: string;
  readonly run: (telemetry: CallObserver, tracer: Tracer) => void;
}

const messages = [{ role: 'user' as const, content: 'Hello' }];
const BUSY: Reply = { error: 'overloaded', fields: { status: 503 }, firstMs: 5 };
const BROKEN: Reply = { error: 'server_error', fields: { status: 500 }, firstMs: 5 };
const PLAIN = { jitter: 'none', baseMs: 100, capMs: 100 } as const;
const ONE = { initial: 1, min: 1, max: 1 };

/** `asking` subscribes as a caller of that number, and returns what leaves. */
type Asking = (caller: number, restarts?: boolean) => () => void;

function scenario(
  name: string,
  policy: PolicyInput,
  replies: readonly Reply[],
  drive: (asking: Asking, runtime: VirtualRuntime) => void,
): TraceScenario {
  const run: TraceScenario['run'] = (telemetry, tracer) => {
    const runtime = virtualRuntime();
    const provider = fakeProvider(runtime, (_model, index) => replies[Math.min(index, replies.length - 1)] ?? {});
    const sluice: Sluice = createSluice(provider.source, policy, { runtime, telemetry });
    const asking: Asking = (caller, restarts = false) => {
      const root = tracer.startSpan(`${name}: caller ${caller}`);
      const leave = context.with(trace.setSpan(context.active(), root), () => {
        const options = { attributes: { caller }, tenant: `t${caller % 3}` };
        const call$ = restarts
          ? sluice.chat({ model: 'a', messages }, { ...options, restarts: true })
          : sluice.chat({ model: 'a', messages }, options);
        const subscription = (call$ as ReturnType<Sluice['chat']>).subscribe({ error: () => {} });
        subscription.add(() => root.end());
        return () => subscription.unsubscribe();
      });
      return leave;
    };
    drive(asking, runtime);
    runtime.run();
  };
  return { name, run };
}

/** What a trace must show rightly, whatever it is sent by. */
export const TRACE_SCENARIOS: readonly TraceScenario[] = [
  scenario('success', {}, [{}], (asking) => void asking(1)),
  scenario('success after two failures', { models: { default: { retry: PLAIN } } }, [BUSY, BROKEN, {}], (asking) => {
    asking(1);
  }),
  scenario(
    'fallback',
    { models: { default: {}, a: { retry: { attempts: 1 }, fallback: ['b'] } } },
    [BUSY, {}],
    (asking) => void asking(1),
  ),
  scenario(
    'restart',
    { models: { default: { retry: PLAIN, midStream: 'restart' } } },
    [{ error: 'stream_truncated', text: 'x', firstMs: 5, endMs: 10 }, {}],
    (asking) => void asking(1, true),
  ),
  scenario('cancel while queued', { models: { default: { concurrency: ONE } } }, [{ endMs: 50 }], (asking, runtime) => {
    asking(1);
    const leave = asking(2);
    runtime.advance(30);
    leave();
  }),
  scenario('cancel in backoff', { models: { default: { retry: PLAIN } } }, [BUSY], (asking, runtime) => {
    const leave = asking(1);
    runtime.advance(30);
    leave();
  }),
  scenario('cancel in mid-stream', {}, [{ endMs: 50 }], (asking, runtime) => {
    const leave = asking(1);
    runtime.advance(30);
    leave();
  }),
  scenario(
    'breaker open',
    { models: { default: { retry: { attempts: 1 }, breaker: { consecutiveFailures: 1 } } } },
    [BUSY],
    (asking, runtime) => {
      asking(1);
      runtime.advance(20);
      asking(2);
    },
  ),
  scenario(
    'deadline',
    { deadlineMs: 40, models: { default: { timeouts: { firstContentMs: 100 } } } },
    [{ hangs: true }],
    (asking) => void asking(1),
  ),
  scenario(
    'interleaved calls',
    { deadlineMs: 600_000, models: { default: { concurrency: ONE, retry: { ...PLAIN, attempts: 2 } } } },
    [{}, BUSY, {}, {}, BROKEN, {}],
    (asking) => {
      for (let caller = 1; caller <= 200; caller++) asking(caller);
    },
  ),
];

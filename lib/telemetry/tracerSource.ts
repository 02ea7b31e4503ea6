import { trace } from '@opentelemetry/api';
import type { Tracer, TracerProvider } from '@opentelemetry/api';
import { SCOPE_NAME } from './spanNames.ts';

/** The global provider stands in for the one that will be registered, and has no tracer of it before. */
interface Deferred {
  getDelegateTracer?(name: string): Tracer | undefined;
  getDelegate?(): TracerProvider;
}

/**
 * Finds the tracer of `provider`, or of the one that is registered by the time of a call. `undefined` while none is: a
 * call then costs no more than this question.
 */
export function tracerSource(provider: TracerProvider | undefined): () => Tracer | undefined {
  if (provider !== undefined) {
    const tracer = provider.getTracer(SCOPE_NAME);
    return () => tracer;
  }
  let from: TracerProvider | undefined;
  let tracer: Tracer | undefined;
  return () => {
    const registered: TracerProvider & Deferred = trace.getTracerProvider();
    if (registered.getDelegateTracer === undefined) {
      if (registered !== from) tracer = registered.getTracer(SCOPE_NAME);
      from = registered;
      return tracer;
    }
    const behind = registered.getDelegate?.();
    if (behind === from) return tracer;
    from = behind;
    return (tracer = registered.getDelegateTracer(SCOPE_NAME));
  };
}

import { TracerProvider } from '@opentelemetry/sdk-trace';
import { openTelemetry } from '../../../lib/telemetry/index.ts';
import type { CallObserver } from '../../../lib/telemetry/index.ts';

/** Makes spans, keeps none of them, and knows how many have not ended. */
export class OpenSpans {
  count = 0;
  readonly telemetry: CallObserver;

  constructor() {
    const processor = {
      onStart: () => void this.count++,
      onEnd: () => void this.count--,
      forceFlush: () => Promise.resolve(),
      shutdown: () => Promise.resolve(),
    };
    const tracerProvider = new TracerProvider({ spanProcessors: [processor] });
    this.telemetry = openTelemetry({ tracerProvider, metrics: false });
  }
}

import { trace } from '@opentelemetry/api';
import { expect } from 'chai';
import { openTelemetry } from '../../lib/telemetry/openTelemetry.ts';
import { startTelemetry } from '../../lib/telemetry/startTelemetry.ts';
import { withOtelEnvironment } from '../helpers/otelEnvironment.ts';
import { otlpReceiver } from '../helpers/otlpReceiver.ts';
import { asReceived, outline, spanForest } from '../helpers/spanForest.ts';
import type { SpanNode } from '../helpers/spanForest.ts';
import { TRACE_SCENARIOS } from '../helpers/traceScenarios.ts';
import { tracing } from '../helpers/tracing.ts';

/** By the name of the scenario, in memory. */
function inMemory(): readonly SpanNode[] {
  const traces = tracing();
  const telemetry = openTelemetry({ tracerProvider: traces.provider });
  for (const { run } of TRACE_SCENARIOS) run(telemetry, traces.provider.getTracer('spec'));
  expect(traces.spans.length, 'spans ended').to.equal(traces.started);
  const forest = spanForest(traces.spans.map(asReceived));
  traces.stop();
  return forest;
}

/** The same through the SDK, an exporter, a socket and a decoder. */
async function overTheWire(protocol: string): Promise<readonly SpanNode[]> {
  const receiver = await otlpReceiver();
  const environment = {
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint,
    OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
    OTEL_METRICS_EXPORTER: 'none',
  };
  await withOtelEnvironment(environment, async () => {
    const telemetry = await startTelemetry({ serviceName: 'spec' });
    const observer = openTelemetry();
    for (const { run } of TRACE_SCENARIOS) run(observer, trace.getTracer('spec'));
    await telemetry.shutdown();
  });
  await receiver.close();
  expect(receiver.complaints).to.deep.equal([]);
  expect(new Set(receiver.spans.map(({ spanId }) => spanId)).size).to.equal(receiver.spans.length);
  return spanForest(receiver.spans);
}

describe('traces', function () {
  this.timeout(30_000);
  let expected: readonly SpanNode[];
  before(() => void (expected = inMemory()));

  const of = (forest: readonly SpanNode[], name: string): readonly SpanNode[] =>
    forest.filter((root) => root.name.startsWith(`${name}: `));

  it('have the shape of what happened', () => {
    const shapes = Object.fromEntries(
      TRACE_SCENARIOS.slice(0, -1).map(({ name }) => [
        name,
        of(expected, name).flatMap((root) => root.below.flatMap((call) => outline(call))),
      ]),
    );
    expect(shapes).to.deep.equal({
      success: ['chat a', '  attempt a'],
      'success after two failures': ['chat a', '  attempt a overloaded', '  attempt a server_error', '  attempt a'],
      fallback: ['chat a', '  attempt a overloaded', '  attempt b'],
      restart: ['chat a', '  attempt a stream_truncated', '  attempt a'],
      'cancel while queued': ['chat a', '  attempt a', 'chat a', '  queue'],
      'cancel in backoff': ['chat a', '  attempt a overloaded'],
      'cancel in mid-stream': ['chat a', '  attempt a'],
      'breaker open': ['chat a overloaded', '  attempt a overloaded', 'chat a circuit_open'],
      deadline: ['chat a timeout_deadline', '  attempt a timeout_deadline'],
    });
  });

  it('keep 200 interleaved calls apart, each below its own caller', () => {
    const callers = of(expected, 'interleaved calls');
    expect(callers).to.have.length(200);
    for (const { name, below } of callers) {
      expect(below.map(({ attributes }) => `interleaved calls: caller ${String(attributes['caller'])}`)).to.deep.equal([
        name,
      ]);
    }
  });

  for (const protocol of ['http/json', 'http/protobuf']) {
    describe(`over OTLP by ${protocol}`, () => {
      let received: readonly SpanNode[];
      before(async () => void (received = await overTheWire(protocol)));

      for (const { name } of TRACE_SCENARIOS) {
        it(`are what they are in memory: ${name}`, () => {
          expect(of(received, name)).to.have.length.above(0);
          expect(of(received, name)).to.deep.equal(of(expected, name));
        });
      }
    });
  }
});

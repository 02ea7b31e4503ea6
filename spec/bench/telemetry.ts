// What telemetry costs a call of a client and each of its chunks, beside the same client without it.
import { context, createContextKey, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BatchSpanProcessor, InMemorySpanExporter, TracerProvider } from '@opentelemetry/sdk-trace';
import { Observable } from 'rxjs';
import type { AttemptSource, WireEvent } from '../../lib/core/attempt.ts';
import { currentScope } from '../../lib/core/currentScope.ts';
import { createSluice } from '../../lib/index.ts';
import type { CallObserver, Sluice } from '../../lib/index.ts';
import { GEN_AI_METRICS } from '../../lib/telemetry/genAiMetricNames.ts';
import { openTelemetry } from '../../lib/telemetry/index.ts';
import { histogramOf } from '../../lib/telemetry/Series.ts';
import { testMetrics } from '../helpers/metricsOf.ts';
import { writeResults } from '../prove/parts/writeResults.ts';

const ROUNDS = 11;
const FEW = 1;
const MANY = 1_001;

context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
const exporter = new InMemorySpanExporter();
const processor = new BatchSpanProcessor({ exporter, maxQueueSize: 1e6, maxExportBatchSize: 1e4 });
const tracerProvider = new TracerProvider({ spanProcessors: [processor] });
// Without a reader, it would measure nothing.
const meterProvider = testMetrics().provider;
const elsewhere = context.active().setValue(createContextKey('elsewhere'), true);

const chunk = (content: string, reason: string | null): WireEvent => ({
  kind: 'data',
  event: undefined,
  value: {
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1_767_225_600,
    model: 'gpt-5.5-2026',
    choices: [{ index: 0, delta: { content }, finish_reason: reason }],
  },
});
const head: WireEvent = { kind: 'head', status: 200, requestId: 'req_1', hints: undefined };
const words = Array.from({ length: MANY }, (_, at) => chunk(` word ${at}`, null));
const last = chunk('', 'stop');

/** Answers at once, with so many chunks of content. */
function transport(count: number, away: boolean): AttemptSource {
  const answer = (subscriber: { next(event: WireEvent): void; complete(): void }): void => {
    subscriber.next(head);
    for (let at = 0; at < count; at++) subscriber.next(words[at] as WireEvent);
    subscriber.next(last);
    subscriber.next({ kind: 'done' });
    subscriber.complete();
  };
  return () =>
    new Observable((subscriber) => {
      const scope = currentScope();
      scope?.dispatched(performance.now());
      if (away) context.with(elsewhere, answer, undefined, subscriber);
      else answer(subscriber);
      scope?.closed();
    });
}

const rows: Readonly<Record<string, { readonly telemetry?: CallObserver; readonly away?: boolean }>> = {
  'no telemetry': {},
  'no provider registered': { telemetry: openTelemetry() },
  spans: { telemetry: openTelemetry({ tracerProvider, metrics: false }) },
  'spans, chunks set off from elsewhere': { telemetry: openTelemetry({ tracerProvider, metrics: false }), away: true },
  metrics: { telemetry: openTelemetry({ meterProvider, spans: false }) },
  'spans and metrics': { telemetry: openTelemetry({ tracerProvider, meterProvider }) },
};
const BARE = 'no telemetry';
const NONE = 'no provider registered';
const SPANS = 'spans';
const METRICS = 'metrics';
const BOTH = 'spans and metrics';
const BY_HAND = 'by hand';
const HISTOGRAMS_BY_HAND = 'histograms by hand';
const names = Object.keys(rows);

const policy = {
  quota: { account: { requestsPerMinute: 1e9, burstRequests: 1e9, tokensPerMinute: 1e12 } },
  models: { default: { concurrency: { initial: 1_000, min: 1, max: 1_000 } } },
};
const clients = new Map<string, Sluice>();
for (const [name, { telemetry, away = false }] of Object.entries(rows)) {
  for (const size of [FEW, MANY]) {
    clients.set(`${name} ${size}`, createSluice(transport(size, away), policy, { telemetry }));
  }
}
const request = { model: 'gpt-5.5', messages: [{ role: 'user' as const, content: 'Hello' }], temperature: 0.2 };

/** The floor: what the SDK alone takes for the spans of one such call, with as many attributes. */
function spansByHand(calls: number): number {
  const tracer = tracerProvider.getTracer('by hand');
  const some = (count: number): Record<string, string | number> =>
    Object.fromEntries(
      Array.from({ length: count }, (_, at) => [`gen_ai.attribute.${at}`, at % 2 ? at : `value ${at}`]),
    );
  const [atStart, atEnd, ofAttempt, atItsEnd] = [some(10), some(6), some(3), some(5)];
  const startTime: [number, number] = [1_767_225_600, 5];
  const root = context.active();
  const startMs = performance.now();
  for (let call = 0; call < calls; call++) {
    const span = tracer.startSpan('chat gpt-5.5', { kind: 2, startTime, attributes: { ...atStart } }, root);
    const inside = trace.setSpan(root, span);
    const attempt = tracer.startSpan('attempt gpt-5.5', { kind: 2, startTime, attributes: { ...ofAttempt } }, inside);
    attempt.addEvent('first_chunk', {}, startTime);
    attempt.setAttributes(atItsEnd);
    attempt.end(startTime);
    span.setAttributes(atEnd);
    span.end(startTime);
  }
  return ((performance.now() - startMs) * 1_000) / calls;
}

const histograms = Object.values(GEN_AI_METRICS).map((shape) => histogramOf(meterProvider.getMeter('by hand'), shape));

/** The floor of metrics: what the SDK alone takes for the seven measurements of histograms of one such call. */
function histogramsByHand(calls: number): number {
  const attributes = Object.fromEntries(
    Array.from({ length: 4 }, (_, at) => [`gen_ai.attribute.${at}`, `value ${at}`]),
  );
  const startMs = performance.now();
  for (let call = 0; call < calls; call++) {
    for (let at = 0; at < 7; at++) histograms[at % histograms.length]?.record(0.3, attributes);
  }
  return ((performance.now() - startMs) * 1_000) / calls;
}

/** Microseconds that a call takes, from subscribe to complete. */
function timeCalls(client: Sluice, calls: number): number {
  let ended = 0;
  const startMs = performance.now();
  for (let call = 0; call < calls; call++) {
    client.chat(request, { tenant: 'acme' }).subscribe({ complete: () => ended++ });
  }
  const us = (performance.now() - startMs) * 1_000;
  if (ended !== calls) throw new Error('a source that is there at once must end at once');
  return us / calls;
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? NaN;

/** Microseconds by row and size in one round. Rows take turns, so that a busy neighbour slows all of them. */
async function measureOnce(): Promise<Map<string, number>> {
  const times = new Map<string, number>();
  for (const size of [FEW, MANY]) {
    for (const name of names) {
      const key = `${name} ${size}`;
      const client = clients.get(key) as Sluice;
      // The smallest of several: whatever interrupts only adds.
      const tries: number[] = [];
      for (let turn = 0; turn < 3; turn++) {
        tries.push(timeCalls(client, size === FEW ? 200 : 10));
        await processor.forceFlush();
        exporter.reset();
      }
      times.set(key, Math.min(...tries));
    }
  }
  const byHand: number[] = [];
  for (let turn = 0; turn < 3; turn++) {
    byHand.push(spansByHand(200));
    await processor.forceFlush();
    exporter.reset();
  }
  times.set(BY_HAND, Math.min(...byHand));
  times.set(HISTOGRAMS_BY_HAND, Math.min(...[1, 2, 3].map(() => histogramsByHand(200))));
  return times;
}

// Not counted: the first rounds find code that no optimizer has seen.
for (let round = 0; round < 3; round++) await measureOnce();
const rounds: Map<string, number>[] = [];
for (let round = 0; round < ROUNDS; round++) rounds.push(await measureOnce());

const at = (round: Map<string, number>, name: string, size: number): number => round.get(`${name} ${size}`) ?? NaN;
const usOf = (name: string, size: number): number => median(rounds.map((round) => at(round, name, size)));
const sdkUs = median(rounds.map((round) => round.get(BY_HAND) ?? NaN));
const sdkHistogramUs = median(rounds.map((round) => round.get(HISTOGRAMS_BY_HAND) ?? NaN));
const callUs = (name: string): number => median(rounds.map((round) => at(round, name, FEW) - at(round, BARE, FEW)));
const chunkUs = (name: string): number =>
  median(
    rounds.map((round) => {
      const perChunk = (row: string): number => (at(round, row, MANY) - at(round, row, FEW)) / (MANY - FEW);
      return perChunk(name) - perChunk(BARE);
    }),
  );
const ratio = (name: string, size: number): number =>
  median(rounds.map((round) => at(round, name, size) / at(round, BARE, size)));

await writeResults({
  name: 'telemetry',
  script: 'bench',
  title: 'What telemetry costs',
  text: `
A call of \`createSluice\` with quota and concurrency limit over a transport that answers at once, with and without telemetry:
microseconds from subscribe to complete for an answer of 1 and of 1,001 chunks, what telemetry adds to a call and to a chunk,
and the ratio to the same call without it. Spans go to a batch processor with an in-memory exporter; what the exporter does
later is not in it. *From elsewhere*: every chunk arrives in a foreign context, and is delivered in that of the consumer.
The goals are less than 2 us a call without a provider, and less than 15 us a call and 0.3 us a chunk with one. Here it is
${callUs(NONE).toFixed(1)} us, ${callUs(SPANS).toFixed(1)} us and ${chunkUs(SPANS).toFixed(2)} us. The SDK alone takes ${sdkUs.toFixed(1)} us here for two spans with as many attributes.
Metrics add ${callUs(METRICS).toFixed(1)} us a call, of which the SDK takes ${sdkHistogramUs.toFixed(1)} us for seven measurements of histograms, and both together
${callUs(BOTH).toFixed(1)} us.

Medians over ${ROUNDS} rounds of the smallest of three tries, in one process.`,
  rows: [
    ['us', '1 chunk', '1,001 chunks', 'added by call', 'added by chunk', 'ratio at 1', 'ratio at 1,001'],
    ...names.map((name) => [
      name,
      usOf(name, FEW).toFixed(1),
      usOf(name, MANY).toFixed(1),
      name === BARE ? '' : callUs(name).toFixed(1),
      name === BARE ? '' : chunkUs(name).toFixed(3),
      ratio(name, FEW).toFixed(2),
      ratio(name, MANY).toFixed(2),
    ]),
  ],
  claims: [
    ['without a provider, telemetry adds less than a tenth to a call', ratio(NONE, FEW) < 1.1],
    ['without a provider, it adds nothing to a chunk that can be told from noise', chunkUs(NONE) < 0.05],
    ['with a provider, a call takes less than twice as long', ratio(SPANS, FEW) < 2],
    ['with a provider, it adds less than 0.3 us to a chunk', chunkUs(SPANS) < 0.3],
    ['metrics add nothing to a chunk that can be told from noise', chunkUs(METRICS) < 0.05],
    [
      'metrics add less to a call than twice what the SDK takes for its histograms',
      callUs(METRICS) < 2 * sdkHistogramUs,
    ],
  ],
});

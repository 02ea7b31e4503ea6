// Shows calls that meet a 429, an outage, a broken stream and an impatient caller as traces in Jaeger and metrics for Prometheus.

import { trace } from '@opentelemetry/api';
import OpenAI from 'openai';
import { lastValueFrom, map, take, timer } from 'rxjs';
import { createSluice, lastAnswer } from 'sluice';
import { startEmulator } from 'sluice/emulator';
import { observeSluice, openTelemetry, startTelemetry } from 'sluice/telemetry';

const endpoint = process.env['OTEL_EXPORTER_OTLP_ENDPOINT'] ?? 'http://localhost:4318';
const jaeger = 'http://localhost:16686';
const listening = await fetch(endpoint).then(
  () => true,
  () => false,
);
if (!listening) {
  console.log(`Nothing listens at ${endpoint}: the traces go nowhere. For Jaeger, see examples/observability.`);
  // Exporters try for ten seconds; nobody has to wait for that here.
  process.env['OTEL_EXPORTER_OTLP_TIMEOUT'] ??= '500';
}

const telemetry = await startTelemetry({ serviceName: 'sluice-tracing', flushTimeoutMs: 3_000 });
const emulator = await startEmulator({ firstTokenMs: 60, tokenMs: 4, tokens: 30 });
const sluice = createSluice(
  new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none' }),
  {
    deadlineMs: 8_000,
    quota: { account: { requestsPerMinute: 3_000, burstRequests: 4 } },
    models: {
      default: { retry: { attempts: 2, baseMs: 50 }, midStream: 'restart' },
      large: { fallback: ['small'], price: { inputPerMTok: 2.5, outputPerMTok: 10 } },
      small: { price: { inputPerMTok: 0.1, outputPerMTok: 0.4 } },
    },
    spend: { perTenantPerDay: { default: 1 } },
  },
  { telemetry: openTelemetry() },
);
observeSluice(sluice);
const tracer = trace.getTracer('tracing-example');
const request = { model: 'large', messages: [{ role: 'user' as const, content: 'Hello' }] };

/** Runs what an application would do, under a span of its own, and says where to look at it. */
async function show(title: string, lookFor: string, work: () => Promise<string>): Promise<void> {
  await tracer.startActiveSpan(title, async (span) => {
    console.log(`\n${title}: ${await work()}`);
    console.log(`  ${jaeger}/trace/${span.spanContext().traceId}`);
    console.log(`  ${lookFor}`);
    span.end();
  });
}
const ask = async (tenant = 'acme', conversation?: string): Promise<string> =>
  `answered by ${(await lastAnswer(sluice.chat(request, { tenant, conversation, restarts: true }))).model}`;

emulator.script([{ kind: 'error', error: 'requests', retryAfterMs: 300 }]);
await show(
  'a 429',
  'A red attempt, a gap as long as the provider asked for, a clean attempt; the call itself is clean.',
  () => ask(),
);

emulator.script([{ kind: 'error', error: 'overloaded', times: 2, model: 'large' }]);
await show('an outage', 'Two red attempts of large, the event fallback, and an attempt of small.', () => ask());

emulator.script([{ kind: 'cut', after: 12 }]);
await show(
  'a broken stream',
  'A first attempt with first_chunk that ends red with stream_truncated, the event restart, and a second one.',
  () => ask(),
);

await show(
  'an impatient caller',
  'Outcome cancelled, and nothing red: leaving is no error. The attempt ends where the caller left.',
  async () => {
    const left = sluice.chat(request, { tenant: 'beta' }).pipe(
      take(5),
      map(() => 'left after five chunks'),
    );
    return lastValueFrom(left);
  },
);

await show('two turns at once', 'The second call begins with a span queue: it waits for the first one.', async () => {
  const [first] = await Promise.all([ask('acme', 'c-1'), ask('acme', 'c-1')]);
  return `both ${first}`;
});

const seconds = Number(process.env['SECONDS'] ?? 0);
if (seconds > 0) {
  console.log(`\nCalls go on for ${seconds} s; metrics at ${telemetry.metricsUrl}, dashboard at http://localhost:3000`);
  emulator.script([]);
  const until = Date.now() + seconds * 1_000;
  for (let call = 0; Date.now() < until; call++) {
    // Every ten seconds the provider has three bad ones.
    if (call % 300 === 0) emulator.script([{ kind: 'error', error: 'overloaded', times: 90, model: 'large' }]);
    ask(['acme', 'beta', 'gamma'][call % 3], `c-${call % 20}`).catch(() => {});
    await lastValueFrom(timer(33));
  }
} else {
  const page = await (await fetch(telemetry.metricsUrl ?? '')).text();
  console.log(`\nPrometheus would read this and more at ${telemetry.metricsUrl}; SECONDS=600 keeps calls coming:`);
  for (const line of page.match(/^sluice_requests_total.*$/gm) ?? []) console.log(`  ${line}`);
}

await sluice.close();
await emulator.close();
await telemetry.shutdown();

import { context, propagation, trace } from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { UndiciInstrumentation } from '@opentelemetry/instrumentation-undici';
import { expect } from 'chai';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import OpenAI from 'openai';
import { lastValueFrom } from 'rxjs';
import type { Observable } from 'rxjs';
import { createSluice } from '../../lib/client/createSluice.ts';
import { retryWithJitter } from '../../lib/operators/retryWithJitter.ts';
import { chat } from '../../lib/sources/chat.ts';
import { openTelemetry } from '../../lib/telemetry/openTelemetry.ts';
import { traceAttempt } from '../../lib/telemetry/traceAttempt.ts';
import { traceCall } from '../../lib/telemetry/traceCall.ts';
import { chatChunks } from '../helpers/scriptedFetch.ts';
import { tracing } from '../helpers/tracing.ts';
import type { Tracing } from '../helpers/tracing.ts';

const request = { model: 'm', messages: [{ role: 'user' as const, content: 'Hello' }] };

describe('requests over HTTP', () => {
  let traces: Tracing;
  let undici: UndiciInstrumentation;
  let server: Server;
  let openai: OpenAI;
  let traceparents: string[];

  beforeEach(async () => {
    traces = tracing();
    propagation.setGlobalPropagator(new W3CTraceContextPropagator());
    undici = new UndiciInstrumentation();
    undici.setTracerProvider(traces.provider);
    traceparents = [];
    server = createServer((message, response) => {
      traceparents.push(String(message.headers['traceparent']));
      message.resume();
      if (traceparents.length === 1) return response.writeHead(503).end();
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const chunk of chatChunks(['Hel', 'lo'])) response.write(`data: ${JSON.stringify(chunk)}\n\n`);
      return response.end('data: [DONE]\n\n');
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    openai = new OpenAI({ apiKey: 'none', baseURL: `http://127.0.0.1:${port}/v1`, maxRetries: 0 });
  });

  afterEach(async () => {
    undici.disable();
    propagation.disable();
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
    expect(traces.spans.length, 'spans ended').to.equal(traces.started);
    traces.stop();
  });

  it('are children of their attempts, and carry them on, by policy', async () => {
    const telemetry = openTelemetry({ tracerProvider: traces.provider });
    const policy = { models: { default: { retry: { baseMs: 1 } } } };
    await nested(createSluice(openai, policy, { telemetry }).chat(request));
  });

  it('are children of their attempts, and carry them on, by hand', async () => {
    const telemetry = openTelemetry({ tracerProvider: traces.provider });
    await nested(chat(openai, request).pipe(traceAttempt(), retryWithJitter({ baseMs: 1 }), traceCall({ telemetry })));
  });

  it('are children of the call where nothing makes attempts of them', async () => {
    const telemetry = openTelemetry({ tracerProvider: traces.provider });
    traceparents.push('the first one has failed');
    await lastValueFrom(chat(openai, request).pipe(traceCall({ telemetry })));
    await settled();
    expect(traces.tree().map((line) => line.replace(/\d+\.\.\d+.*/, '').trimEnd())).to.deep.equal([
      'chat m CLIENT',
      '  attempt m CLIENT 200',
      '    POST CLIENT 200',
    ]);
  });

  async function nested(call$: Observable<unknown>): Promise<void> {
    const root = traces.provider.getTracer('test').startSpan('root');
    await context.with(trace.setSpan(context.active(), root), () => lastValueFrom(call$));
    root.end();
    await settled();
    expect(traces.tree().map((line) => line.replace(/\d+\.\.\d+.*/, '').trimEnd())).to.deep.equal([
      'root INTERNAL',
      '  chat m CLIENT',
      '    attempt m CLIENT 503 ERROR server_error',
      '      POST CLIENT 503 ERROR 503',
      '    attempt m CLIENT 200',
      '      POST CLIENT 200',
    ]);
    const posts = traces.spans.filter(({ name }) => name === 'POST').map((span) => span.spanContext());
    expect(traceparents).to.deep.equal(posts.map(({ traceId, spanId }) => `00-${traceId}-${spanId}-01`));
    expect(traces.named('chat m').attributes).to.include({ 'server.address': '127.0.0.1' });
  }

  /** The body's end reaches the instrumentation a moment after it has reached the consumer. */
  async function settled(): Promise<void> {
    for (let turns = 0; turns < 200 && traces.spans.length < traces.started; turns++) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
});

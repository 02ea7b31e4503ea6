import { expect } from 'chai';
import { OpenAI } from 'openai';
import { lastValueFrom, take } from 'rxjs';
import { createSluice } from '../../lib/client/createSluice.ts';
import { predictAnswer } from '../../lib/emulator/model/answerText.ts';
import { startEmulator } from '../../lib/emulator/startEmulator.ts';
import { openTelemetry } from '../../lib/telemetry/openTelemetry.ts';
import type { OpenTelemetryOptions } from '../../lib/telemetry/openTelemetry.ts';
import { startTelemetry } from '../../lib/telemetry/startTelemetry.ts';
import { withOtelEnvironment } from '../helpers/otelEnvironment.ts';
import { otlpReceiver } from '../helpers/otlpReceiver.ts';
import type { OtlpReceiver } from '../helpers/otlpReceiver.ts';

const SECRET = 'sk-planted-7f3a9c51d2';
const PROMPT = 'planted prompt of a private nature';
const request = {
  model: 'large',
  messages: [
    { role: 'system' as const, content: `${PROMPT}, for the system` },
    { role: 'user' as const, content: PROMPT },
  ],
  user: 'planted-user',
};
const ANSWER = predictAnswer(request, { tokens: 12 });
const POLICY = {
  models: { default: { retry: { attempts: 3, baseMs: 1 } }, large: { fallback: ['small'] } },
};

/** Everything that leaves the process while providers answer, fail, and repeat key and prompt in their errors. */
async function exported(protocol: string, options: OpenTelemetryOptions): Promise<OtlpReceiver> {
  const receiver = await otlpReceiver();
  const echo = (status: number, headers = {}): object => ({
    kind: 'reply',
    status,
    headers: { 'content-type': 'application/json', 'x-request-id': 'req-1', ...headers },
    body: JSON.stringify({ error: { message: `Bad: ${PROMPT} with key ${SECRET}`, code: SECRET, type: PROMPT } }),
  });
  const emulator = await startEmulator({
    firstTokenMs: 1,
    tokenMs: 1,
    tokens: 12,
    script: [
      echo(429, { 'retry-after-ms': '1', 'x-echo': SECRET }),
      echo(503),
      { kind: 'pass' },
      { kind: 'in_band_error', after: 3, value: { error: { message: `${PROMPT} ${SECRET}`, code: SECRET } } },
      echo(400),
      echo(401),
      { kind: 'pass' },
      { kind: 'reset', after: 2 },
    ] as never,
  });
  const environment = {
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint,
    OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
    OTEL_METRICS_EXPORTER: 'otlp',
  };
  await withOtelEnvironment(environment, async () => {
    const telemetry = await startTelemetry({ serviceName: 'spec' });
    const openai = new OpenAI({ baseURL: emulator.baseURL, apiKey: SECRET, defaultHeaders: { 'x-team-key': SECRET } });
    const sluice = createSluice(openai, POLICY, { telemetry: openTelemetry(options) });
    for (let call = 0; call < 4; call++) await lastValueFrom(sluice.chat(request)).catch(() => {});
    await lastValueFrom(sluice.chat(request).pipe(take(1)));
    await lastValueFrom(sluice.complete(request)).catch(() => {});
    await sluice.close();
    await telemetry.shutdown();
  });
  await emulator.close();
  await receiver.close();
  expect(receiver.complaints).to.deep.equal([]);
  return receiver;
}

describe('exported bytes', function () {
  this.timeout(30_000);

  const bytesOf = ({ requests }: OtlpReceiver): string =>
    requests.map(({ body }) => body.toString('latin1')).join('\n');

  for (const protocol of ['http/json', 'http/protobuf']) {
    it(`hold neither key, nor prompt, nor answer, nor user: ${protocol}`, async () => {
      const receiver = await exported(protocol, {});

      const bytes = bytesOf(receiver);
      const names = receiver.spans.map(({ name }) => name);
      expect(names.filter((name) => name === 'chat large')).to.have.length(6);
      expect(names.filter((name) => name.startsWith('attempt '))).to.have.length.above(6);
      expect(receiver.metrics.map(({ name }) => name)).to.include('sluice.requests');
      expect(bytes).to.contain('rate_limited');
      for (const planted of [SECRET, PROMPT, 'planted', ANSWER, ANSWER.slice(0, 20)]) {
        expect(bytes.includes(planted), planted).to.equal(false);
      }
    });
  }

  it('hold prompt and answer where content is to be captured, and the key still not', async () => {
    const bytes = bytesOf(await exported('http/json', { captureContent: true }));
    expect(bytes.includes(PROMPT)).to.equal(true);
    expect(bytes.includes(ANSWER.slice(0, 20))).to.equal(true);
    expect(bytes.includes(SECRET)).to.equal(false);
  });
});

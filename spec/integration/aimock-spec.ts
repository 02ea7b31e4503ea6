import { LLMock } from '@copilotkit/aimock';
import type { ChaosConfig } from '@copilotkit/aimock';
import { expect } from 'chai';
import OpenAI from 'openai';
import { defer } from 'rxjs';
import type { Observable } from 'rxjs';
import { AnswerAssembler, chat, complete, fromCall, isRestart, respond, retryWithJitter } from '../../lib/index.ts';
import type { AttemptOptions, SluiceError } from '../../lib/index.ts';
import { record } from '../helpers/record.ts';

const TEXT = 'Rivers keep their banks because the banks keep giving way, a little, everywhere, all the time.';
const VECTOR = [0.25, -0.5, 0.75];
const messages = [{ role: 'user' as const, content: 'hello' }];

/** A provider emulator by others: it must not take knowledge of ours to be read right. */
describe('against aimock', () => {
  let mock: LLMock;
  let openai: OpenAI;

  before(async () => {
    mock = new LLMock({ port: 0, chunkSize: 10 });
    mock.onMessage('hello', { content: TEXT });
    mock.onMessage('truncated', { content: TEXT }, { latency: 20, truncateAfterChunks: 9 });
    mock.onMessage('disconnected', { content: TEXT }, { latency: 40, disconnectAfterMs: 400 });
    mock.onEmbedding('hello', { embedding: VECTOR });
    await mock.start();
    openai = new OpenAI({ baseURL: `${mock.url}/v1`, apiKey: 'none', maxRetries: 0 });
  });
  after(() => mock.stop());
  afterEach(() => {
    mock.clearChaos();
    mock.clearRequests();
  });

  /** Each way of asking, as something that emits what was answered. */
  const asks: Record<string, (options: AttemptOptions) => Observable<unknown>> = {
    chat: (options) => chat(openai, { model: 'gpt-4o', messages }, options),
    respond: (options) => respond(openai, { model: 'gpt-4o', input: 'hello' }, options),
    complete: (options) => complete(openai, { model: 'gpt-4o', messages }, options),
    'fromCall, for embeddings': (options) =>
      fromCall(
        (signal) =>
          openai.embeddings.create(
            { model: 'text-embedding-3-small', input: 'hello', encoding_format: 'float' },
            { signal, maxRetries: 0 },
          ),
        options,
      ),
  };
  const faults: Record<string, { readonly chaos: ChaosConfig; readonly code: string; readonly status?: number }> = {
    'a 429': { chaos: { rateLimitRate: 1 }, code: 'rate_limited', status: 429 },
    'a dropped request': { chaos: { dropRate: 1 }, code: 'server_error', status: 500 },
    'a disconnect': { chaos: { disconnectRate: 1 }, code: 'connection' },
    'a malformed body': { chaos: { malformedRate: 1 }, code: 'upstream_body_invalid' },
  };

  function wholeOf(values: readonly unknown[]): unknown {
    const [first] = values as readonly {
      readonly object?: string;
      readonly data?: readonly { embedding: unknown }[];
    }[];
    if (first?.object === 'list') return first.data?.[0]?.embedding;
    const assembler = new AnswerAssembler();
    for (const value of values) {
      if (isRestart(value)) assembler.restart();
      else if ('type' in (value as object)) assembler.addResponses(value as never);
      else assembler.addChat(value as never);
    }
    return assembler.snapshot().text;
  }

  for (const [name, ask] of Object.entries(asks)) {
    const answered = name.startsWith('fromCall') ? VECTOR : TEXT;

    describe(name, () => {
      it('answers', async () => {
        const seen = record(ask({}));
        await seen.end;
        expect(seen.ended).to.equal('complete');
        expect(wholeOf(seen.values)).to.deep.equal(answered);
      });

      for (const [fault, { chaos, code, status }] of Object.entries(faults)) {
        it(`reports ${fault} as ${code}`, async () => {
          mock.setChaos(chaos);
          const seen = record(ask({}));
          await seen.end;
          expect(seen.error).to.include({ code, source: 'upstream', retryable: true });
          if (status !== undefined) expect(seen.error.status).to.equal(status);
          if (code === 'rate_limited') expect(seen.error.retryAfterMs).to.be.above(0);
          expect(mock.getRequests()).to.have.length(1);
        });

        it(`recovers from ${fault}`, async () => {
          mock.setChaos(chaos);
          const failed: SluiceError[] = [];
          const shouldRetry = (failure: SluiceError): boolean => {
            failed.push(failure);
            mock.clearChaos();
            return failure.retryable;
          };
          const seen = record(ask({}).pipe(retryWithJitter({ baseMs: 5, shouldRetry })));
          await seen.end;
          expect(seen.ended).to.equal('complete');
          expect(wholeOf(seen.values)).to.deep.equal(answered);
          expect(failed.map((failure) => failure.code)).to.deep.equal([code]);
          expect(mock.getRequests()).to.have.length(2);
        });
      }

      it('gets every one of many calls through a mix of all but 429s', async () => {
        mock.setChaos({ dropRate: 0.2, malformedRate: 0.2, disconnectRate: 0.2 });
        const patient = { attempts: 40, baseMs: 1, capMs: 3 };
        const all = Array.from({ length: 25 }, () => record(ask({}).pipe(retryWithJitter(patient))));
        await Promise.all(all.map((seen) => seen.end));
        for (const seen of all) expect(wholeOf(seen.values)).to.deep.equal(answered);
        expect(mock.getRequests().length).to.be.above(25);
      });
    });
  }

  const streams: Record<string, (content: string) => Observable<unknown>> = {
    chat: (content) => chat(openai, { model: 'gpt-4o', messages: [{ role: 'user', content }] }),
    respond: (content) => respond(openai, { model: 'gpt-4o', input: content }),
  };
  for (const [name, ask] of Object.entries(streams)) {
    for (const fault of ['truncated', 'disconnected']) {
      it(`tells a stream that was ${fault} from an answer, and starts over where it may: ${name}`, async () => {
        const failing = record(ask(fault));
        await failing.end;
        expect(failing.error.code).to.be.oneOf(['stream_truncated', 'connection']);
        const partial = failing.error.partial?.text ?? '';
        expect(partial).to.not.be.oneOf(['', TEXT]);
        expect(TEXT.startsWith(partial)).to.equal(true);

        let asked = 0;
        const source = defer(() => ask(asked++ === 0 ? fault : 'hello'));
        const restarting = record(source.pipe(retryWithJitter({ baseMs: 5, midStream: 'restart', restarts: true })));
        await restarting.end;
        expect(restarting.ended).to.equal('complete');
        expect(restarting.values.filter(isRestart)).to.have.length(1);
        expect(wholeOf(restarting.values)).to.equal(TEXT);
      });
    }
  }
});

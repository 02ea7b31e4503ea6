import { expect } from 'chai';
import { setTimeout as sleep } from 'node:timers/promises';
import { startEmulator } from '../../lib/emulator/startEmulator.ts';
import type { Emulator } from '../../lib/emulator/startEmulator.ts';
import type { FaultRule } from '../../lib/emulator/model/faults.ts';
import { httpSource } from '../../lib/http/transport/httpSource.ts';
import type { HttpSource } from '../../lib/http/transport/httpSource.ts';
import { freePort } from '../helpers/freePort.ts';
import { startGateway } from '../helpers/gateways.ts';
import type { RunningGateway } from '../helpers/gateways.ts';
import { LoopWatch } from '../prove/parts/LoopWatch.ts';
import type { AskClient, Question, Raised } from './RealClient.ts';
import { forEachClient } from './realClients.ts';

/** Each call must be sent: what earlier ones failed of must open no breaker. */
const POLICY = {
  models: { default: { retry: { attempts: 1 }, breaker: { consecutiveFailures: 1_000, minCalls: 1_000 } } },
};
const TEXT = 'amber basin cedar delta';
const CALL: FaultRule = {
  kind: 'pass',
  answer: { toolCalls: [{ name: 'weather', arguments: '{"city":"Oslo"}' }] },
};
const WITHIN_MS = 50;

const CLASSES = [
  [400, 'BadRequestError'],
  [401, 'AuthenticationError'],
  [403, 'PermissionDeniedError'],
  [404, 'NotFoundError'],
  [409, 'ConflictError'],
  [422, 'UnprocessableEntityError'],
  [429, 'RateLimitError'],
  [500, 'InternalServerError'],
  [503, 'InternalServerError'],
] as const;

describe('the gateway, asked by real clients', () => {
  let emulator: Emulator;
  let source: HttpSource;
  let gateway: RunningGateway;

  before(async () => {
    emulator = await startEmulator({ text: TEXT, firstTokenMs: 1, tokenMs: 1 });
    source = httpSource({ baseURL: emulator.baseURL });
    gateway = await startGateway(source, { policy: POLICY });
  });
  after(async () => {
    await gateway.close();
    await source.close();
    await emulator.close();
  });

  forEachClient(({ family, open }) => {
    let client: AskClient;
    const raisedBy = async (asked: AskClient, question: Question): Promise<Raised> => {
      try {
        await asked.ask(question);
      } catch (thrown) {
        return asked.raised(thrown);
      }
      throw new Error('nothing was raised');
    };

    before(async function () {
      // Loading some of them takes its time on a busy machine.
      this.timeout(60_000);
      client = await open(gateway.baseURL);
    });

    for (const stream of [true, false]) {
      describe(stream ? 'streamed' : 'not streamed', () => {
        it('gives text and usage', async () => {
          emulator.script([]);
          const { text, inputTokens, outputTokens } = await client.ask({ stream });
          expect(text).to.equal(TEXT);
          expect(inputTokens).to.be.above(0);
          expect(outputTokens).to.be.above(0);
        });

        it('gives tool calls', async () => {
          emulator.script([CALL]);
          const { toolCalls } = await client.ask({ stream, tool: true });
          expect(toolCalls).to.deep.equal([{ name: 'weather', arguments: { city: 'Oslo' } }]);
        });

        for (const [status, type] of CLASSES) {
          it(`raises a ${status} as its own class`, async () => {
            const error = { message: 'no', type: 'some_type', code: 'some_code' };
            emulator.script([{ kind: 'reply', status, body: { error } }]);
            const expected = { type: family === 'ai' ? 'AI_APICallError' : type, status };
            // What a 429 teaches of the rate would hold back all that is asked afterwards.
            const own = status === 429 ? await startGateway(source, { policy: POLICY }) : undefined;
            const asked = own ? await open(own.baseURL) : client;
            expect(await raisedBy(asked, { stream })).to.deep.equal(expected);
            await own?.close();
          });
        }

        it('raises a connection that is not there', async () => {
          const nobody = await open(`http://127.0.0.1:${await freePort()}/v1`);
          const { type, status } = await raisedBy(nobody, { stream });
          expect(type).to.equal(family === 'ai' ? 'AI_APICallError' : 'APIConnectionError');
          expect(status).to.equal(undefined);
        });
      });
    }

    for (const fault of ['in_band_error', 'reset', 'cut'] as const) {
      it(`raises what goes wrong in the middle of a stream: ${fault}`, async () => {
        emulator.script([{ kind: fault, after: 2 }]);
        let pieces = 0;
        const { type } = await raisedBy(client, { stream: true, onText: () => void pieces++ });
        expect(pieces).to.be.above(0);
        if (family === 'openai') expect(type).to.equal('APIError');
        else expect(type).to.be.a('string');
      });
    }

    it('cancels at the provider within 50 ms', async function () {
      this.retries(3);
      const watch = new LoopWatch().start();
      for (const stream of [true, false]) {
        emulator.reset();
        emulator.script([{ kind: 'stall', after: stream ? 3 : 'connect' }]);
        const controller = new AbortController();
        let pieces = 0;
        const asked = client
          .ask({ stream, signal: controller.signal, onText: () => void pieces++ })
          .catch((thrown: unknown) => thrown);
        const running = (): boolean => emulator.report().log.at(-1)?.outcome === 'running';
        for (let at = 0; at < 1_000 && !(running() && (!stream || pieces > 2)); at++) await sleep(5);
        watch.lateMs = 0;
        const { upMs } = emulator.report();
        controller.abort();
        for (let at = 0; at < 1_000 && running(); at++) await sleep(1);
        await asked;
        const { outcome, endedMs = NaN } = emulator.report().log.at(-1) ?? {};
        expect(outcome).to.equal('aborted');
        // All four of them share this loop: what it is late by is the machine's part.
        expect(endedMs - upMs).to.be.below(WITHIN_MS + 3 * watch.lateMs);
        expect(gateway.gateway.inFlight).to.equal(0);
      }
      watch.stop();
    });
  });
});

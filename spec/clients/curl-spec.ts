import { expect } from 'chai';
import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { startEmulator } from '../../lib/emulator/startEmulator.ts';
import type { Emulator } from '../../lib/emulator/startEmulator.ts';
import { httpSource } from '../../lib/http/transport/httpSource.ts';
import type { HttpSource } from '../../lib/http/transport/httpSource.ts';
import { startGateway } from '../helpers/gateways.ts';
import type { RunningGateway } from '../helpers/gateways.ts';
import { LoopWatch } from '../prove/parts/LoopWatch.ts';

const WITHIN_MS = 50;
const TEXT = 'amber basin cedar delta';
const installed = spawnSync('curl', ['--version']).status === 0;

describe('the gateway, asked by curl', function () {
  if (!installed && process.env['CI'] !== 'true') {
    it.skip('needs curl');
    return;
  }
  let emulator: Emulator;
  let source: HttpSource;
  let gateway: RunningGateway;

  beforeEach(async () => {
    emulator = await startEmulator({ text: TEXT, firstTokenMs: 1, tokenMs: 1 });
    source = httpSource({ baseURL: emulator.baseURL });
    gateway = await startGateway(source, { policy: { models: { default: { retry: { attempts: 1 } } } } });
  });
  afterEach(async () => {
    await gateway.close();
    await source.close();
    await emulator.close();
  });

  const curl = (request: object, ...flags: string[]): ChildProcess => {
    const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }], ...request });
    const json = ['-H', 'content-type: application/json', '--data-binary', body];
    return spawn('curl', ['-sN', '--max-time', '20', ...flags, ...json, `${gateway.baseURL}/chat/completions`]);
  };
  const ended = async (child: ChildProcess): Promise<readonly [output: string, code: number]> => {
    const [output, [code]] = await Promise.all([text(child.stdout!), once(child, 'close')]);
    return [output, code as number];
  };

  it('streams an answer to its end', async () => {
    const [output, code] = await ended(curl({ stream: true, stream_options: { include_usage: true } }));
    const events = output.trimEnd().split('\n\n');
    expect(code).to.equal(0);
    expect(events.at(-1)).to.equal('data: [DONE]');
    const chunks = events.slice(0, -1).map((event) => JSON.parse(event.slice('data: '.length)) as Chunk);
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).to.equal(TEXT);
    expect(chunks.at(-1)?.usage).to.have.property('total_tokens');
  });

  it('answers as a whole', async () => {
    const [output, code] = await ended(curl({}));
    expect(code).to.equal(0);
    const { choices } = JSON.parse(output) as { choices: { message: { content: string } }[] };
    expect(choices[0]?.message.content).to.equal(TEXT);
  });

  it('tells of a failure by its status, and in JSON', async () => {
    emulator.script([{ kind: 'error', error: 'requests', retryAfterMs: 2_000 }]);
    const [output, code] = await ended(curl({}, '--fail-with-body', '-D', '-'));
    expect(code).to.equal(22);
    const [head = '', body = ''] = output.split('\r\n\r\n');
    expect(head)
      .to.match(/^HTTP\/1.1 429 /)
      .and.match(/^retry-after: \d+/im);
    expect((JSON.parse(body) as { error: object }).error).to.include.keys('message', 'type', 'code');
  });

  it('tells of a failure in the middle of a stream, and ends it', async () => {
    emulator.script([{ kind: 'reset', after: 2 }]);
    const [output, code] = await ended(curl({ stream: true }));
    expect(code).to.equal(0);
    expect(output.trimEnd().split('\n\n').at(-1)).to.match(/^data: \{"error":\{/);
  });

  it('cancels at the provider within 50 ms', async function () {
    this.retries(3);
    emulator.script([{ kind: 'stall', after: 3 }]);
    const child = curl({ stream: true });
    let output = '';
    child.stdout!.setEncoding('utf8').on('data', (part: string) => (output += part));
    for (let at = 0; at < 1_000 && output.split('data:').length < 4; at++) await sleep(5);
    const watch = new LoopWatch().start();
    const { upMs } = emulator.report();
    child.kill('SIGKILL');
    const running = (): boolean => emulator.report().log.at(-1)?.outcome === 'running';
    for (let at = 0; at < 1_000 && running(); at++) await sleep(1);
    watch.stop();
    const { outcome, endedMs = NaN } = emulator.report().log.at(-1) ?? {};
    expect(outcome).to.equal('aborted');
    // What timers are late by is the machine's part, and so is the time that it takes to end another process.
    expect(endedMs - upMs).to.be.below(WITHIN_MS + 50 + 3 * watch.lateMs);
  });
});

interface Chunk {
  readonly choices: readonly { readonly delta: { readonly content?: string } }[];
  readonly usage?: object | null;
}

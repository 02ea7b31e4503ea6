import { expect } from 'chai';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { concat, of, Subject, throwError } from 'rxjs';
import type { Observable } from 'rxjs';
import { SluiceError } from '../../lib/core/errors.ts';
import { restart } from '../../lib/core/restart.ts';
import { pipeToResponse } from '../../lib/http/pipeToResponse.ts';
import { replayable } from '../../lib/http/replayable.ts';
import type { AnswerPart } from '../../lib/operators/answerPart.ts';
import { role, say, stop, usage } from '../helpers/chunks.ts';

interface Said {
  readonly parts: readonly Record<string, unknown>[];
  readonly metadata: unknown;
  readonly failure: string | undefined;
}
interface UiChat {
  send(text: string): Promise<Said>;
  resume(): Promise<Said | null>;
}

const installed = existsSync(new URL('node_modules/ai/package.json', import.meta.url));
// Where it is not installed the specs are skipped, but in CI they fail.
const describeHere = installed || process.env['CI'] !== undefined ? describe : describe.skip;

const parts = (...values: readonly unknown[]): Observable<AnswerPart> => of(...(values as AnswerPart[]));
const delta = (fields: object): object => ({ choices: [{ index: 0, delta: fields }] });

describeHere('the UI message stream, read by ai', function () {
  this.timeout(30_000);
  const answers = replayable();
  let server: Server;
  let chat: UiChat;
  let answer$: Observable<AnswerPart>;

  before(async () => {
    server = createServer((request, response) => {
      const asked = { key: 'c1' };
      // `useChat` asks by POST, and comes back by GET.
      const events$ = request.method === 'GET' ? answers.resume(asked) : answers.open({}, () => answer$);
      events$.pipe(pipeToResponse(response, { format: 'ui-messages' })).subscribe();
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { uiMessages } = (await import(new URL('uiMessages.mjs', import.meta.url).href)) as {
      uiMessages: (api: string) => UiChat;
    };
    chat = uiMessages(`http://127.0.0.1:${(server.address() as AddressInfo).port}/chat`);
  });

  after(() => {
    server.closeAllConnections();
    server.close();
  });

  const saidWith = (...values: readonly unknown[]): Promise<Said> => {
    answer$ = parts(...values);
    return chat.send('Hello');
  };

  it('is a message of reasoning and text, with its usage', async () => {
    const said = await saidWith(
      role(),
      delta({ reasoning_content: 'Hm' }),
      delta({ reasoning_content: '.' }),
      say('Hel'),
      say('lo'),
      stop(),
      usage(),
    );
    expect(said.failure).to.equal(undefined);
    expect(said.parts.map(({ type, text, state }) => [type, text, state])).to.deep.equal([
      ['step-start', undefined, undefined],
      ['reasoning', 'Hm.', 'done'],
      ['text', 'Hello', 'done'],
    ]);
    expect(said.metadata).to.have.nested.property('usage.totalTokens', 5);
  });

  it('has tool calls with their input', async () => {
    const call = (fields: object): object => delta({ tool_calls: [{ index: 0, ...fields }] });
    const said = await saidWith(
      call({ id: 't1', function: { name: 'weather', arguments: '' } }),
      call({ function: { arguments: '{"city":' } }),
      call({ function: { arguments: '"Oslo"}' } }),
      stop('tool_calls'),
    );
    expect(said.failure).to.equal(undefined);
    expect(said.parts.at(-1)).to.deep.include({
      type: 'tool-weather',
      toolCallId: 't1',
      state: 'input-available',
      input: { city: 'Oslo' },
    });
  });

  it('says where the arguments of a tool call are no JSON', async () => {
    const said = await saidWith(
      delta({ tool_calls: [{ index: 0, id: 't1', function: { name: 'weather', arguments: '{"city' } }] }),
      stop('tool_calls'),
    );
    expect(said.parts.at(-1)).to.include({ type: 'tool-weather', state: 'output-error' });
  });

  it('forgets what a restart takes back', async () => {
    const said = await saidWith(say('wrong'), restart('stream_truncated', 'm2'), say('right'), stop());
    expect(said.failure).to.equal(undefined);
    expect(said.parts.filter(({ type }) => type === 'text').map(({ text }) => text)).to.deep.equal(['right']);
  });

  it('ends with the failure of the answer', async () => {
    answer$ = concat(
      parts(say('Hel')),
      throwError(() => new SluiceError('stream_idle', 'nothing came')),
    );
    const said = await chat.send('Hello');
    expect(said.failure).to.equal('nothing came');
  });

  it('is refused with a status before it begins, which the transport throws', async () => {
    answer$ = throwError(() => new SluiceError('overloaded', 'busy'));
    const thrown = await chat.send('Hello').catch((error: unknown) => error);
    expect(thrown).to.be.instanceOf(Error);
    expect(String(thrown)).to.include('busy');
  });

  it('is resumed from its start while it runs, and not when there is nothing', async () => {
    expect(await chat.resume()).to.equal(null);
    const source = new Subject<AnswerPart>();
    const first = answers.open({ key: 'c1' }, () => source).subscribe();
    source.next(say('Hel') as unknown as AnswerPart);
    first.unsubscribe();
    const resumed = chat.resume();
    await once(server, 'request');
    for (const part of [say('lo'), stop()]) source.next(part as unknown as AnswerPart);
    source.complete();
    expect((await resumed)?.parts.at(-1)).to.include({ type: 'text', text: 'Hello' });
    expect(await chat.resume()).to.equal(null);
    answers.close();
  });
});

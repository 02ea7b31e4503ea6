import { expect } from 'chai';
import type { PolicyInput } from '../../../lib/policy/PolicyInput.ts';
import { eventsOf, startGateway } from '../../helpers/gateways.ts';
import type { RunningGateway } from '../../helpers/gateways.ts';
import { rawServer } from '../../helpers/rawServer.ts';
import type { RawExchange, RawServer } from '../../helpers/rawServer.ts';

const CHAT = { model: 'm', messages: [{ role: 'user', content: 'hello' }], stream: true };
const PATH = '/v1/chat/completions';
const QUICK = { retry: { attempts: 3, baseMs: 1, capMs: 2 } };

const chunk = (id: string, delta: object, reason: string | null = null): object => ({
  id,
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason: reason }],
});
const texts = (id: string, ...parts: readonly string[]): readonly object[] =>
  parts.map((content) => chunk(id, { content }));

/** What one attempt is answered with; what has no end breaks off. */
interface Script {
  readonly events: readonly unknown[];
  readonly whole?: boolean;
}

const broken = (...events: readonly unknown[]): Script => ({ events });
const whole = (...events: readonly unknown[]): Script => ({ events, whole: true });

describe('createGateway, streams that break off', () => {
  let server: RawServer;
  let running: RunningGateway;

  const start = async (scripts: readonly Script[], policy: PolicyInput = {}): Promise<void> => {
    server = await rawServer((exchange: RawExchange, index) => {
      const script = scripts[Math.min(index, scripts.length - 1)];
      exchange.head();
      exchange.events(...(script?.events ?? []));
      if (script?.whole) exchange.end();
      else setTimeout(() => exchange.cut(), 20);
    });
    running = await startGateway(server.baseURL, { policy: { models: { default: QUICK }, ...policy } });
  };
  const ask = async (mode?: string, path = PATH, body: object = CHAT): Promise<readonly Record<string, unknown>[]> => {
    const response = await running.ask(path, body, mode === undefined ? {} : { 'x-sluice-mid-stream': mode });
    expect(response.status).to.equal(200);
    const events = await eventsOf(response);
    return events.map((event) =>
      event === '[DONE]' ? { done: true } : (JSON.parse(event) as Record<string, unknown>),
    );
  };
  const textOf = (events: readonly Record<string, unknown>[]): string =>
    events
      .map((event) => (event as { choices?: { delta?: { content?: string } }[] }).choices?.[0]?.delta?.content ?? '')
      .join('');

  afterEach(async () => {
    await running.close();
    await server.close();
  });

  it('ends with the failure, unless told otherwise', async () => {
    await start([broken(...texts('a', 'Hel'))]);
    const events = await ask();
    expect(textOf(events)).to.equal('Hel');
    expect(events.at(-1)).to.have.property('error');
    expect(server.exchanges).to.have.length(1);
  });

  it('goes on silently where the new answer begins with what was delivered, in whatever pieces', async () => {
    await start([
      broken(chunk('a', { role: 'assistant', content: '' }), ...texts('a', 'Hel', 'lo wo')),
      whole(chunk('b', { role: 'assistant' }), ...texts('b', 'Hello', ' world', '!'), chunk('b', {}, 'stop'), '[DONE]'),
    ]);
    const events = await ask('restart');
    expect(textOf(events)).to.equal('Hello world!');
    expect(events.at(-1)).to.deep.equal({ done: true });
    expect(events.some((event) => 'error' in event)).to.equal(false);
    // One answer has one id.
    expect(new Set(events.map(({ id }) => id).filter((id) => id !== undefined))).to.deep.equal(new Set(['a']));
    expect(events.filter((event) => JSON.stringify(event).includes('assistant'))).to.have.length(1);
  });

  it('ends with the failure where the new answer is another one', async () => {
    await start([broken(...texts('a', 'Hel', 'lo')), whole(...texts('b', 'Help!'), chunk('b', {}, 'stop'), '[DONE]')]);
    const events = await ask('restart');
    expect(textOf(events)).to.equal('Hello');
    const { error } = events.at(-1) as { error: { message: string; code: string } };
    expect(error.message).to.include('another one');
    expect(error.code).to.equal('connection');
  });

  it('ends with the failure where the new answer is over sooner', async () => {
    await start([broken(...texts('a', 'Hello')), whole(...texts('b', 'Hel'), chunk('b', {}, 'stop'), '[DONE]')]);
    const events = await ask('restart');
    expect(textOf(events)).to.equal('Hello');
    expect(events.at(-1)).to.have.property('error');
  });

  it('counts a call as failed that it ends itself, as its client does', async () => {
    const ended: unknown[] = [];
    const listen = (): void => {
      running.sluice.events$.subscribe((event) => {
        if (event.type === 'call.ended') ended.push([event.outcome, event.code, (event.wastedTokens ?? 0) > 0]);
      });
    };
    const another = whole(...texts('b', 'Help!'), chunk('b', {}, 'stop'), '[DONE]');
    const shorter = whole(...texts('b', 'Hel'), chunk('b', {}, 'stop'), '[DONE]');
    for (const next of [another, shorter]) {
      await start([broken(...texts('a', 'Hello')), next]);
      listen();
      expect((await ask('restart')).at(-1)).to.have.property('error');
      await running.close();
      await server.close();
    }
    await start([whole(...texts('a', 'x'.repeat(3_000)), chunk('a', {}, 'stop'), '[DONE]')]);
    await running.close();
    running = await startGateway(server.baseURL, { maxBufferedBytes: 1_000 });
    listen();
    await running.ask(PATH, CHAT, { 'x-sluice-mid-stream': 'buffer' });
    expect(ended).to.deep.equal([
      ['failure', 'connection', true],
      ['failure', 'connection', true],
      ['failure', 'upstream_body_invalid', true],
    ]);
  });

  it('goes on from where it was when it breaks off twice', async () => {
    await start([
      broken(...texts('a', 'one ')),
      broken(...texts('b', 'one two ')),
      whole(...texts('c', 'o', 'ne two three'), chunk('c', {}, 'stop'), '[DONE]'),
    ]);
    const events = await ask('restart');
    expect(textOf(events)).to.equal('one two three');
    expect(events.at(-1)).to.deep.equal({ done: true });
  });

  it('compares tool calls, whose ids no two answers share', async () => {
    const call = (id: string, name: string, json: string): object => ({
      tool_calls: [{ index: 0, id, type: 'function', function: { name, arguments: json } }],
    });
    const more = (json: string): object => ({ tool_calls: [{ index: 0, function: { arguments: json } }] });
    await start([
      broken(chunk('a', call('call_1', 'look', '')), chunk('a', more('{"q"'))),
      whole(
        chunk('b', call('call_1', 'look', '{"q":')),
        chunk('b', more('1}')),
        chunk('b', {}, 'tool_calls'),
        '[DONE]',
      ),
    ]);
    const events = await ask('restart');
    const said = events
      .map(
        (event) =>
          (event as { choices?: { delta: { tool_calls?: { function: { arguments?: string } }[] } }[] }).choices?.[0],
      )
      .map((choice) => choice?.delta.tool_calls?.[0]?.function.arguments ?? '');
    expect(said.join('')).to.equal('{"q":1}');
    await running.close();
    await server.close();
    await start([
      broken(chunk('a', call('call_1', 'look', '{'))),
      whole(chunk('b', call('call_2', 'look', '{}')), chunk('b', {}, 'tool_calls'), '[DONE]'),
    ]);
    expect((await ask('restart')).at(-1)).to.have.property('error');
  });

  it('does the same for responses, with the ids and numbers of the first', async () => {
    const place = (id: string): object => ({ item_id: id, output_index: 0, content_index: 0 });
    const item = (id: string): object => ({
      id,
      type: 'message',
      role: 'assistant',
      status: 'in_progress',
      content: [],
    });
    const answer = (of: string, ...parts: readonly string[]): readonly Record<string, unknown>[] =>
      [
        { type: 'response.created', response: { id: `r-${of}`, status: 'in_progress', output: [] } },
        { type: 'response.output_item.added', output_index: 0, item: item(`i-${of}`) },
        ...parts.map((delta) => ({ type: 'response.output_text.delta', ...place(`i-${of}`), delta })),
      ].map((event, i) => ({ ...event, sequence_number: i }));
    const end = (of: string, text: string, at: number): readonly object[] => [
      { type: 'response.output_text.done', ...place(`i-${of}`), text, sequence_number: at },
      {
        type: 'response.completed',
        response: { id: `r-${of}`, status: 'completed', output: [{ ...item(`i-${of}`), status: 'completed' }] },
        sequence_number: at + 1,
      },
    ];
    await start([
      broken(...answer('a', 'Hel', 'lo')),
      whole(...answer('b', 'Hello wo', 'rld'), ...end('b', 'Hello world', 4)),
    ]);
    const body = { model: 'm', input: 'hello', stream: true };
    const events = await ask('restart', '/v1/responses', body);
    expect(events.map(({ delta = '' }) => delta).join('')).to.equal('Hello world');
    expect(events.map(({ sequence_number: number }) => number)).to.deep.equal(events.map((_, i) => i));
    expect(JSON.stringify(events)).to.not.include('i-b').and.not.include('r-b');
    expect(events.at(-1)).to.include({ type: 'response.completed' });
    expect(events.filter(({ type }) => type === 'response.created')).to.have.length(1);
  });

  it('delivers a whole answer only, when told to', async () => {
    await start([broken(...texts('a', 'Hel')), whole(...texts('b', 'Good', 'bye'), chunk('b', {}, 'stop'), '[DONE]')]);
    const events = await ask('buffer');
    expect(textOf(events)).to.equal('Goodbye');
    expect(events.at(-1)).to.deep.equal({ done: true });
  });

  it('gives a whole answer that never came the status of its failure', async () => {
    await start([broken(...texts('a', 'Hel'))]);
    const response = await running.ask(PATH, CHAT, { 'x-sluice-mid-stream': 'buffer' });
    expect(response.status).to.equal(502);
    expect(response.headers.get('x-sluice-attempts')).to.equal('3');
    expect(await response.json()).to.have.property('error');
  });

  it('keeps no more of a whole answer than it may', async () => {
    await start([whole(...texts('a', 'x'.repeat(3_000)), chunk('a', {}, 'stop'), '[DONE]')]);
    await running.close();
    running = await startGateway(server.baseURL, { maxBufferedBytes: 1_000 });
    const response = await running.ask(PATH, CHAT, { 'x-sluice-mid-stream': 'buffer' });
    expect(response.status).to.equal(502);
  });

  it('goes by the header, then by the gateway, then by the model', async () => {
    const answers = [broken(...texts('a', 'Hel')), whole(...texts('b', 'Hello'), chunk('b', {}, 'stop'), '[DONE]')];
    const ended = async (policy: PolicyInput, mode?: string): Promise<boolean> => {
      await start(answers, policy);
      const events = await ask(mode);
      const done = events.at(-1)?.['done'] === true;
      await running.close();
      await server.close();
      return done;
    };
    const restarts: PolicyInput = { models: { default: { ...QUICK, midStream: 'restart' } } };
    expect(await ended(restarts)).to.equal(true);
    expect(await ended({ ...restarts, gateway: { midStream: 'fail' } })).to.equal(false);
    expect(await ended({ gateway: { midStream: 'buffer' } })).to.equal(true);
    expect(await ended({ gateway: { midStream: 'buffer' } }, 'fail')).to.equal(false);
    await start(answers);
  });
});

import { expect } from 'chai';
import OpenAI, { AzureOpenAI } from 'openai';
import { firstValueFrom } from 'rxjs';
import sinon from 'sinon';
import { admittedClient } from '../../lib/client/admittedClient.ts';
import { createSluice } from '../../lib/client/createSluice.ts';
import type { ClientCall, Sluice } from '../../lib/client/Sluice.ts';
import { startEmulator } from '../../lib/emulator/index.ts';
import type { Emulator } from '../../lib/emulator/index.ts';
import { forEachOpenAI } from '../helpers/openaiVersions.ts';

const messages = [{ role: 'user' as const, content: 'Hello' }];
const policy = { models: { default: { concurrency: { limit: 1 }, retry: { attempts: 2, baseMs: 1 } } } };

describe('the client that sluice.call gives', () => {
  let emulator: Emulator;
  let sluice: Sluice;
  let calls: number;

  beforeEach(async () => {
    emulator = await startEmulator({ firstTokenMs: 1, tokenMs: 0, tokens: 4, recordHeaders: ['x-own'] });
    calls = 0;
  });
  afterEach(() => emulator.close());

  const make = (openai: OpenAI): void => {
    sluice = createSluice(openai, policy);
    sluice.events$.subscribe(({ type }) => (calls += type === 'call.ended' ? 1 : 0));
  };
  const asked = <T>(call: ClientCall<T>): Promise<T> => firstValueFrom(sluice.call('m', call));

  forEachOpenAI(({ OpenAI: Version }) => {
    // With a limit of one, a request that is admitted within an admitted call would wait for ever.
    const nested = (): void => {
      const options = { apiKey: 'key', baseURL: emulator.baseURL, defaultHeaders: { 'x-own': 'kept' } };
      make(new Version({ ...options, fetch: (input, init) => sluice.fetch(input, init) }));
    };

    it('passes a sluice.fetch of its own, streamed or not, as it has been admitted', async () => {
      nested();
      const whole = await asked((client, signal, model) =>
        client.chat.completions.create({ model, messages }, { signal }),
      );
      expect(whole.choices[0]?.message.content).to.not.equal('');
      const helper = await asked((client, signal, model) =>
        client.chat.completions.stream({ model, messages }, { signal }).finalContent(),
      );
      expect(helper).to.equal(whole.choices[0]?.message.content);
      const response = await asked((client, signal, model) =>
        client.responses.create({ model, input: 'Hello' }, { signal }),
      );
      expect(response.output_text).to.not.equal('');
      expect(calls).to.equal(3);
      expect(emulator.report().log.map(({ headers }) => headers)).to.deep.equal(Array(3).fill({ 'x-own': 'kept' }));
    });

    it('has its own retries off, unless the call asks for some', async () => {
      make(new Version({ apiKey: 'key', baseURL: emulator.baseURL }));
      emulator.script([{ kind: 'error', error: 'server_error', times: 'always' }]);
      const embed = (maxRetries?: number): Promise<unknown> =>
        asked((client, signal, model) =>
          client.embeddings.create(
            { model, input: ['one'] },
            { signal, ...(maxRetries !== undefined && { maxRetries }) },
          ),
        ).catch(() => {});
      await embed();
      expect(emulator.report().requests).to.equal(2);
    });

    it('admits what another client with the same fetch asks for meanwhile', async () => {
      nested();
      const other = new Version({ apiKey: 'key', baseURL: emulator.baseURL, fetch: (i, o) => sluice.fetch(i, o) });
      await asked((_, __, model) => other.chat.completions.create({ model: `${model}-2`, messages }));
      expect(calls).to.equal(2);
    });
  });

  it('has the methods that somebody has put on the instance', async () => {
    const openai = new OpenAI({ apiKey: 'key', baseURL: emulator.baseURL });
    make(openai);
    sinon.stub(openai.embeddings, 'create').resolves({ data: [] } as never);
    sinon.stub(openai.chat.completions, 'create').resolves({ choices: [] } as never);
    expect(await asked((client) => client.embeddings.create({ model: 'm', input: 'x' }))).to.deep.equal({ data: [] });
    expect(await asked((client) => client.chat.completions.create({ model: 'm', messages }))).to.deep.equal({
      choices: [],
    });
    expect(emulator.report().requests).to.equal(0);
    sinon.restore();
    await asked((client) => client.embeddings.create({ model: 'm', input: 'x' }));
    expect(emulator.report().requests).to.equal(1);
  });

  it('is copied anew only where the original has changed', () => {
    const openai = new OpenAI({ apiKey: 'key', baseURL: emulator.baseURL });
    const copy = admittedClient(openai);
    expect(admittedClient(openai)).to.equal(copy);
    openai.apiKey = 'another';
    expect(admittedClient(openai)).to.not.equal(copy);
    expect(admittedClient(openai)).to.include({ apiKey: 'another', baseURL: emulator.baseURL });
  });

  it('is the same where it cannot be copied', () => {
    const bare = { chat: { completions: { create: () => {} } } } as never as OpenAI;
    expect(admittedClient(bare)).to.equal(bare);
    const broken = Object.assign(new OpenAI({ apiKey: 'key' }), {
      withOptions: () => {
        throw new Error('not this one');
      },
    });
    expect(admittedClient(broken)).to.equal(broken);
  });

  it('stays of its own kind', () => {
    const azure = new AzureOpenAI({ apiKey: 'key', endpoint: 'http://a.invalid', apiVersion: 'v', deployment: 'd' });
    const copy = admittedClient(azure);
    expect(copy).to.be.instanceOf(AzureOpenAI).and.not.equal(azure);
    expect(copy.baseURL).to.equal(azure.baseURL);
    expect(copy.maxRetries).to.equal(0);
  });
});

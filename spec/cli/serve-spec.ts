import { expect } from 'chai';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Terminal } from '../../lib/cli/Command.ts';
import { runCli } from '../../lib/cli/runCli.ts';
import { startEmulator } from '../../lib/emulator/index.ts';
import type { Emulator } from '../../lib/emulator/index.ts';
import { rawServer } from '../helpers/rawServer.ts';
import { describeWithRedis, startRedisServer } from '../helpers/redisServer.ts';

const chat = { model: 'm', messages: [{ role: 'user', content: 'hello' }] };

interface Address {
  readonly url: string;
  readonly baseURL: string;
  readonly port: number;
}

/** Starts the command in this process; `stop` is Ctrl-C, `hangUp` is SIGHUP. */
function serve(...args: string[]) {
  const printed: string[] = [];
  const complained: string[] = [];
  let stop = (): void => {};
  const interrupted = new Promise<void>((resolve) => (stop = resolve));
  let reload: (() => void) | undefined;
  let listening: (line: string) => void = () => {};
  const first = new Promise<string>((resolve) => (listening = resolve));
  const terminal: Terminal = {
    print(line) {
      printed.push(line);
      listening(line);
    },
    complain: (line) => void complained.push(line),
    write: () => {},
    live: undefined,
    interrupted: () => interrupted,
    onReload(work) {
      reload = work;
      return () => (reload = undefined);
    },
  };
  const code = runCli(['serve', ...args], terminal);
  return {
    code,
    first,
    get address() {
      return first.then((line) => JSON.parse(line) as Address);
    },
    stop: () => stop(),
    /** Returns whether anybody heard it. */
    hangUp() {
      reload?.();
      return reload !== undefined;
    },
    printed,
    complained,
  };
}

const post = (url: string, body: unknown, headers: Record<string, string> = {}) =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });

/** With node:http, since `fetch` lets nobody choose the host. */
const statusAt = (url: string, host: string) =>
  new Promise<number | undefined>((resolve, reject) => {
    httpRequest(url, { headers: { host }, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    })
      .on('error', reject)
      .end();
  });

describe('sluice serve', () => {
  let emulator: Emulator;
  let folder: string;
  const policyFile = (text: string): string => {
    const path = join(folder, 'policy.yaml');
    writeFileSync(path, text);
    return path;
  };
  beforeEach(async () => {
    emulator = await startEmulator({ firstTokenMs: 1, tokenMs: 0, tokens: 4 });
    folder = mkdtempSync(join(tmpdir(), 'sluice-serve-'));
  });
  afterEach(async () => {
    await emulator.close();
    rmSync(folder, { recursive: true });
  });
  const toEmulator = (): readonly string[] => ['--base-url', emulator.baseURL, '--port', '0', '--json'];

  it('prints where it listens, answers, and ends with exit code 0 when interrupted', async () => {
    const { code, first, stop, printed } = serve('--base-url', emulator.baseURL, '--port', '0');
    const text = await first;
    const [, url = ''] = /^Listening on (http:\/\/127\.0\.0\.1:\d+)$/m.exec(text) ?? [];
    expect(text).to.include(`${url}/v1`);
    expect((await post(`${url}/v1/chat/completions`, chat)).status).to.equal(200);
    stop();
    expect(await code).to.equal(0);
    expect(printed).to.have.length(1);
  });

  it('asks the clients that the policy names, by models', async () => {
    const other = await startEmulator({ firstTokenMs: 1, tokenMs: 0, tokens: 4 });
    const path = policyFile(
      [
        'clients:',
        `  main: { baseURL: '${emulator.baseURL}', apiKey: one }`,
        `  other: { baseURL: '${other.baseURL}', apiKey: two, headers: { x-team: a } }`,
        'models: { b: { client: other }, default: {} }',
      ].join('\n'),
    );
    const { code, address, stop } = serve('--policy', path, '--port', '0', '--json');
    const { baseURL } = await address;
    expect((await post(`${baseURL}/chat/completions`, chat)).status).to.equal(200);
    expect((await post(`${baseURL}/chat/completions`, { ...chat, model: 'b' })).status).to.equal(200);
    expect([emulator.report().requests, other.report().requests]).to.deep.equal([1, 1]);
    stop();
    expect(await code).to.equal(0);
    await other.close();
  });

  it('takes the client from the environment that OpenAI has for it', async () => {
    const before = process.env['OPENAI_BASE_URL'];
    process.env['OPENAI_BASE_URL'] = emulator.baseURL;
    try {
      const { code, address, stop } = serve('--port', '0', '--json');
      expect((await post(`${(await address).baseURL}/chat/completions`, chat)).status).to.equal(200);
      stop();
      await code;
    } finally {
      if (before === undefined) delete process.env['OPENAI_BASE_URL'];
      else process.env['OPENAI_BASE_URL'] = before;
    }
  });

  it('makes keys of which the policy knows the hash', async () => {
    const made = serve('--new-key');
    expect(await made.code).to.equal(0);
    const [, key = ''] = /(\S+)$/.exec(made.printed[0] ?? '') ?? [];
    const [, hash = ''] = /hash: (\w+)/.exec(made.printed[1] ?? '') ?? [];
    expect(hash).to.equal(createHash('sha256').update(key).digest('hex'));
    const { code, address, stop } = serve('--policy', policyFile(`gateway: { keys: [${hash}] }`), ...toEmulator());
    const { baseURL } = await address;
    expect((await fetch(`${baseURL}/models`)).status).to.equal(401);
    expect((await fetch(`${baseURL}/models`, { headers: { authorization: `Bearer ${key}` } })).status).to.equal(200);
    stop();
    await code;
  });

  it('has a live page at /, unless told otherwise, and metrics', async () => {
    const { code, address, stop } = serve(...toEmulator());
    const { url } = await address;
    const page = await fetch(`${url}/`);
    expect(page.headers.get('content-type')).to.include('text/html');
    expect(await (await fetch(`${url}/metrics`)).text()).to.include('sluice_calls_running 0');
    stop();
    expect(await code).to.equal(0);
    const without = serve(...toEmulator(), '--no-page');
    expect((await fetch(`${(await without.address).url}/`)).status).to.equal(404);
    without.stop();
    await without.code;
  });

  it('answers for this machine by its own names only, where no key is needed', async () => {
    const { code, address, stop } = serve(...toEmulator());
    const { url, port } = await address;
    expect(await statusAt(`${url}/v1/models`, `localhost:${port}`)).to.equal(200);
    expect(await statusAt(`${url}/v1/models`, 'somebody.example')).to.equal(421);
    stop();
    await code;
  });

  it('warns where others can reach it without a key', async () => {
    const { code, address, stop, complained } = serve(...toEmulator(), '--host', '0.0.0.0');
    await address;
    expect(complained.join()).to.match(/asks for no key/);
    stop();
    await code;
    const keyed = serve(
      '--policy',
      policyFile(`gateway: { keys: [${'a'.repeat(64)}] }`),
      ...toEmulator(),
      '--host',
      '0.0.0.0',
    );
    await keyed.address;
    expect(keyed.complained).to.deep.equal([]);
    keyed.stop();
    await keyed.code;
  });

  it('names everything that is wrong with the policy, and ends with 1', async () => {
    const { code, complained, printed } = serve(
      '--policy',
      policyFile('deadlineMs: -1\nmaxInFlight: 0'),
      ...toEmulator(),
    );
    expect(await code).to.equal(1);
    expect(complained.join('\n')).to.include('deadlineMs').and.to.include('maxInFlight');
    expect(printed).to.deep.equal([]);
    expect(await serve('--policy', join(folder, 'none.yaml')).code).to.equal(1);
  });

  const wrong: readonly [readonly string[], RegExp][] = [
    [['--port', 'many'], /--port must be a number, got "many"/],
    [['--port', '70000'], /port must be a whole number from 0 to 65535/],
    [['--drain=-1'], /--drain must be/],
    [['--host', '192.0.2.1'], /--host is no address of this machine/],
    [['--base-url', 'ftp://x'], /baseURL must be an http or https URL/],
  ];
  for (const [args, sentence] of wrong) {
    it(`answers ${args.join(' ')} with one sentence and exit code 2`, async () => {
      const { code, complained, printed } = serve('--base-url', emulator.baseURL, '--port', '0', ...args);
      expect(await code).to.equal(2);
      expect(printed).to.deep.equal([]);
      expect(complained.join('\n')).to.match(sentence).and.not.include('\n');
    });
  }

  it('says when its port is taken', async () => {
    const { address, stop, code } = serve(...toEmulator());
    const { port } = await address;
    const second = serve(...toEmulator(), '--port', String(port));
    expect(await second.code).to.equal(2);
    expect(second.complained.join()).to.include(`port ${port} is taken`);
    stop();
    await code;
  });

  it('tells of a model whose client there is not', async () => {
    const { code, complained } = serve('--policy', policyFile('models: { m: { client: azure } }'), ...toEmulator());
    expect(await code).to.equal(1);
    expect(complained.join()).to.include('models.m.client');
  });

  it('refuses a store that is none, and does not repeat its address', async () => {
    const { code, complained } = serve('--policy', policyFile('store: { url: "http://u:secret@x" }'), ...toEmulator());
    expect(await code).to.equal(2);
    expect(complained.join()).to.include('store.url').and.not.include('secret');
  });

  describe('on SIGHUP', () => {
    const providers = (...lines: string[]): string =>
      policyFile([`clients: { main: { baseURL: '${emulator.baseURL}', apiKey: one } }`, ...lines].join('\n'));

    it('goes by the policy that the file holds by then, without losing those that wait', async () => {
      const rate = (perMinute: number): string =>
        `quota: { account: { requestsPerMinute: ${perMinute}, burstRequests: 1 } }`;
      const { code, address, stop, hangUp, complained } = serve(
        '--policy',
        providers(rate(4)),
        '--port',
        '0',
        '--json',
      );
      const { baseURL, url } = await address;
      expect((await post(`${baseURL}/chat/completions`, chat)).status).to.equal(200);
      const waiting = post(`${baseURL}/chat/completions`, chat);
      const queued = async (): Promise<boolean> =>
        /^sluice_queue_size.* 1$/m.test(await (await fetch(`${url}/metrics`)).text());
      while (!(await queued()));
      providers(rate(60_000), 'models: { big: {}, default: {} }');
      expect(hangUp()).to.equal(true);
      expect((await waiting).status).to.equal(200);
      const { data } = (await (await fetch(`${baseURL}/models`)).json()) as { data: { id: string }[] };
      expect(data.map(({ id }) => id)).to.deep.equal(['big']);
      expect(complained.join('\n')).to.match(/^sluice serve: took the policy of .*policy\.yaml anew$/);
      stop();
      expect(await code).to.equal(0);
      expect(hangUp()).to.equal(false);
    });

    it('keeps the old policy where the new one is wrong, and says so once', async () => {
      const path = providers('models: { one: {}, default: {} }');
      const { code, address, stop, hangUp, complained } = serve('--policy', path, '--port', '0', '--json');
      const { baseURL } = await address;
      const models = async (): Promise<readonly string[]> => {
        const { data } = (await (await fetch(`${baseURL}/models`)).json()) as { data: { id: string }[] };
        return data.map(({ id }) => id);
      };
      const wrong: readonly [string, RegExp][] = [
        ['models: { two: { retry: { attempts: 0 } } }', /policy\.yaml has 1 problem:\n.*models\.two\.retry\.attempts/],
        ['models: [', /policy\.yaml/],
        ["store: { url: 'redis://:secret@127.0.0.1:1' }", /store\.url cannot change/],
      ];
      for (const [line, sentence] of wrong) {
        complained.length = 0;
        providers(line);
        hangUp();
        expect(complained).to.have.length(1);
        expect(complained[0]).to.match(/^sluice serve: the policy stays as it was: /);
        expect(complained[0]).to.match(sentence).and.not.include('secret');
        expect(await models()).to.deep.equal(['one']);
      }
      complained.length = 0;
      rmSync(path);
      hangUp();
      expect(complained.join()).to.match(/cannot be read: there is no such file/);
      expect((await post(`${baseURL}/chat/completions`, chat)).status).to.equal(200);
      stop();
      await code;
    });

    it('asks clients at the addresses and with the keys that they have by then', async () => {
      const other = await rawServer((exchange) => exchange.json(200, { choices: [{ message: { content: 'a' } }] }));
      const { code, address, stop, hangUp, complained } = serve('--policy', providers(), '--port', '0', '--json');
      const { baseURL } = await address;
      await post(`${baseURL}/chat/completions`, chat);
      policyFile(`clients: { main: { baseURL: '${other.baseURL}', apiKey: two } }`);
      hangUp();
      await post(`${baseURL}/chat/completions`, chat);
      policyFile(`clients: { main: { baseURL: '${other.baseURL}', apiKey: three } }`);
      hangUp();
      await post(`${baseURL}/chat/completions`, chat);
      const keys = other.exchanges.map(({ headers }) => headers.authorization);
      expect(keys).to.deep.equal(['Bearer two', 'Bearer three']);
      expect(emulator.report().requests).to.equal(1);

      complained.length = 0;
      policyFile(`clients: { main: { baseURL: '${other.baseURL}' }, more: {} }\nmodels: { m: { client: more } }`);
      hangUp();
      expect(complained.join()).to.include('clients.more is new').and.include('restart it');
      stop();
      expect(await code).to.equal(0);
      await other.close();
    });

    it('answers for this machine only while there are no keys, and for every name while there are', async () => {
      const keyed = `gateway: { keys: [${'a'.repeat(64)}] }`;
      const { code, address, stop, hangUp } = serve('--policy', providers(keyed), '--port', '0', '--json');
      const { url } = await address;
      expect(await statusAt(`${url}/v1/models`, 'somebody.example')).to.equal(401);
      providers();
      hangUp();
      expect(await statusAt(`${url}/v1/models`, 'somebody.example')).to.equal(421);
      providers(keyed);
      hangUp();
      expect(await statusAt(`${url}/v1/models`, 'somebody.example')).to.equal(401);
      stop();
      await code;
    });

    it('warns where others need no key any more', async () => {
      const keyed = `gateway: { keys: [${'a'.repeat(64)}] }`;
      const flags = ['--host', '0.0.0.0', '--port', '0', '--json'];
      const { code, address, stop, hangUp, complained } = serve('--policy', providers(keyed), ...flags);
      const { port } = await address;
      providers();
      hangUp();
      expect((await fetch(`http://127.0.0.1:${port}/v1/models`)).status).to.equal(200);
      expect(complained.join('\n')).to.match(/asks for no key/);
      stop();
      await code;
    });

    it('leaves the signal alone where there is no file', async () => {
      const { code, address, stop, hangUp } = serve(...toEmulator());
      await address;
      expect(hangUp()).to.equal(false);
      stop();
      await code;
    });
  });

  it('sends comments on a silent stream when told to', async () => {
    const slow = await startEmulator({ firstTokenMs: 60, tokenMs: 60, tokens: 2 });
    const flags = ['--base-url', slow.baseURL, '--port', '0', '--json'];
    const texts: string[] = [];
    for (const more of [
      ['--heartbeat', '5'],
      ['--heartbeat', '0'],
      ['--open-after', '0', '--heartbeat', '0'],
    ]) {
      const { code, address, stop } = serve(...flags, ...more);
      const answer = await post(`${(await address).baseURL}/chat/completions`, { ...chat, stream: true });
      texts.push(await answer.text());
      stop();
      await code;
    }
    expect(texts[0]).to.match(/\n\n: ?\n\ndata: /);
    expect(texts[1]).not.to.match(/^:/m);
    expect(texts[2]).to.match(/^: ?\n\n/);
    await slow.close();
  });

  describeWithRedis('with a store', () => {
    it('shares a quota with other gateways', async () => {
      const redis = await startRedisServer();
      const path = policyFile(
        [
          `store: { url: 'redis://127.0.0.1:${redis.port}' }`,
          'quota: { account: { requestsPerMinute: 1, burstRequests: 1, maxWaiting: 0 } }',
          'models: { default: { retry: { attempts: 1 } } }',
        ].join('\n'),
      );
      const gateways = [serve('--policy', path, ...toEmulator()), serve('--policy', path, ...toEmulator())];
      const statuses: number[] = [];
      for (const { address } of gateways) {
        statuses.push((await post(`${(await address).baseURL}/chat/completions`, chat)).status);
      }
      expect(statuses).to.deep.equal([200, 429]);
      for (const { stop, code } of gateways) {
        stop();
        expect(await code).to.equal(0);
      }
      await redis.close();
    });
  });

  it('refuses --base-url next to clients of the policy', async () => {
    const path = policyFile(`clients: { main: { baseURL: '${emulator.baseURL}' } }`);
    const { code, complained } = serve('--policy', path, ...toEmulator());
    expect(await code).to.equal(2);
    expect(complained.join()).to.include('the policy names its clients');
  });

  it('hears signals: lets streams come to their end on SIGTERM, and reports to OpenTelemetry when asked', async function () {
    this.timeout(20_000);
    const slow = await startEmulator({ firstTokenMs: 10, tokenMs: 100, tokens: 8 });
    const env = { ...process.env, OTEL_TRACES_EXPORTER: 'none', OTEL_EXPORTER_PROMETHEUS_PORT: '0' };
    const policy = (models: string): string => policyFile(`models: { ${models}: {}, default: {} }`);
    const flags = [
      'serve',
      '--base-url',
      slow.baseURL,
      '--port',
      '0',
      '--json',
      '--telemetry',
      '--policy',
      policy('a'),
    ];
    const child = spawn(process.execPath, ['lib/cli/main.ts', ...flags], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    const closed = new Promise<number | null>((resolve) => child.on('close', resolve));
    const line = await new Promise<string>((resolve) =>
      child.stdout.once('data', (part: Buffer) => resolve(String(part))),
    );
    const { baseURL, url } = JSON.parse(line) as Address;
    const answer = await post(`${baseURL}/chat/completions`, { ...chat, stream: true });
    expect(await (await fetch(`${url}/metrics`)).text()).to.match(/^sluice_inflight.* 1$/m);
    policy('b');
    child.kill('SIGHUP');
    const told = await new Promise<string>((resolve) =>
      child.stderr.once('data', (part: Buffer) => resolve(String(part))),
    );
    expect(told).to.match(/took the policy/);
    expect(await (await fetch(`${baseURL}/models`)).text()).to.include('"b"');
    child.kill('SIGTERM');
    expect(await answer.text()).to.match(/data: \[DONE\]\n\n$/);
    expect(await closed).to.equal(0);
    await slow.close();
  });
});

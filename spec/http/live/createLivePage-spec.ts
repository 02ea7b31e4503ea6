import { expect } from 'chai';
import express from 'express';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer, request as requestOf } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { isSluiceError } from '../../../lib/core/errors.ts';
import { createLivePage } from '../../../lib/http/live/createLivePage.ts';
import type { LivePage } from '../../../lib/http/live/createLivePage.ts';
import type { LivePageOptions } from '../../../lib/http/live/LivePageOptions.ts';
import { pageFiles } from '../../../lib/http/live/pageFiles.ts';
import { FakeSource } from './parts.ts';

const FOLDER = join(import.meta.dirname, '../../../lib/http/live/page');

describe('createLivePage', () => {
  let source: FakeSource;
  let page: LivePage;
  let server: Server;
  let url: string;

  async function listen(listener: RequestListener): Promise<void> {
    server = createServer(listener).listen(0, '127.0.0.1');
    await once(server, 'listening');
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }
  async function serve(options: LivePageOptions = {}): Promise<void> {
    source = new FakeSource();
    page = createLivePage(source, options);
    await listen((request, response) => page.listener(request, response));
  }
  afterEach(() => {
    page.close();
    server.close();
    server.closeAllConnections();
  });

  it("serves the page with a strict policy: nothing inline, nothing from elsewhere, in nobody's frame", async () => {
    await serve();
    const response = await fetch(url);
    expect(response.headers.get('content-type')).to.equal('text/html; charset=utf-8');
    const policy = response.headers.get('content-security-policy') ?? '';
    expect(policy).to.contain("default-src 'none'").and.to.contain("script-src 'self'").and.not.to.contain('unsafe');
    expect(policy).to.contain("frame-ancestors 'none'");
    expect(response.headers.get('x-content-type-options')).to.equal('nosniff');
    const html = await response.text();
    expect(html).not.to.match(/<script(?![^>]*src=)|<style| style=| on\w+=|https?:/);
  });

  it('serves whatever its files ask for, and has no file that is not served', async () => {
    await serve();
    const served = [...pageFiles().keys()];
    expect(readdirSync(FOLDER)).to.have.members(
      served.filter((name) => !name.startsWith('uplot')).map((name) => name || 'index.html'),
    );
    const html = readFileSync(join(FOLDER, 'index.html'), 'utf8');
    const asked = [...html.matchAll(/(?:src|href)="([^"#]+)"/g)].map(([, name]) => name);
    for (const name of served.filter((each) => each.endsWith('.js') && each !== 'uplot.js')) {
      const code = readFileSync(join(FOLDER, name), 'utf8');
      asked.push(...[...code.matchAll(/from '\.\/([^']+)'/g)].map(([, file]) => file));
    }
    for (const name of new Set(asked)) {
      const response = await fetch(`${url}/${name}`);
      expect(response.status, name).to.equal(200);
      expect((await response.arrayBuffer()).byteLength).to.be.above(100);
    }
  });

  it('sends a file again only if it has changed', async () => {
    await serve();
    const first = await fetch(`${url}/uplot.js`);
    await first.arrayBuffer();
    const headers = { 'if-none-match': first.headers.get('etag') ?? '' };
    expect((await fetch(`${url}/uplot.js`, { headers })).status).to.equal(304);
    expect((await fetch(`${url}/live.js`, { headers })).status).to.equal(200);
  });

  it('answers what it does not have, does not allow or cannot take with JSON', async () => {
    await serve({ maxViewers: 1 });
    const missing = await fetch(`${url}/../../package.json`);
    expect([missing.status, await missing.json()]).to.deep.equal([
      404,
      { error: { message: 'there is nothing at this address' } },
    ]);
    const posted = await fetch(`${url}/events`, { method: 'POST' });
    expect([posted.status, posted.headers.get('allow')]).to.deep.equal([405, 'GET, HEAD']);
    const viewer = await fetch(`${url}/events`);
    const beyond = await fetch(`${url}/events`);
    expect([viewer.status, beyond.status, beyond.headers.get('retry-after')]).to.deep.equal([200, 503, '10']);
    await viewer.body?.cancel();
  });

  it('finds nothing outside its list, however the path is written', async () => {
    await serve();
    const { port } = server.address() as AddressInfo;
    for (const path of [
      '//',
      '/../live.js',
      '/page/../live.js',
      '/%2e%2e/live.js',
      '/index.html',
      '/constructor',
      '/__proto__',
      '*',
    ]) {
      const sent = requestOf({ host: '127.0.0.1', port, path }).end();
      const [response] = (await once(sent, 'response')) as [{ statusCode: number; resume(): void }];
      response.resume();
      expect(response.statusCode, path).to.equal(404);
    }
  });

  it('answers HEAD without a body, and opens no stream for it', async () => {
    await serve();
    for (const path of ['/', '/events']) {
      const response = await fetch(url + path, { method: 'HEAD' });
      expect([response.status, await response.text()]).to.deep.equal([200, '']);
    }
    expect(source.observed).to.equal(false);
  });

  it('streams to whoever asks, and follows no longer than they stay', async () => {
    await serve({ lingerMs: 0, title: 'Here' });
    const response = await fetch(`${url}/events`);
    expect(response.headers.get('content-type')).to.equal('text/event-stream; charset=utf-8');
    expect(response.headers.get('cache-control')).to.equal('no-store');
    const reader = response.body!.getReader();
    let text = '';
    while (!text.includes('event: frame')) text += new TextDecoder().decode((await reader.read()).value as Uint8Array);
    expect(text).to.match(/^retry: 1000\n\nevent: hello\ndata: \{"title":"Here"/);
    expect(source.observed).to.equal(true);
    await reader.cancel();
    while (source.observed) await new Promise((resolve) => setTimeout(resolve, 5));
  });

  it('stands under a path of its own, and leads there', async () => {
    await serve({ path: '/ops/live' });
    expect((await fetch(`${url}/ops/live/live.css`)).status).to.equal(200);
    expect((await fetch(`${url}/live.css`)).status).to.equal(404);
    expect((await fetch(`${url}/ops/lively`)).status).to.equal(404);
    const led = await fetch(`${url}/ops/live`);
    expect([led.redirected, led.url]).to.deep.equal([true, `${url}/ops/live/`]);
    await led.text();
  });

  it('is mounted in Express, with or without the last slash, and leaves other addresses to others', async () => {
    source = new FakeSource();
    page = createLivePage(source);
    const app = express();
    app.use('/live', page.listener);
    app.use((_request, response) => void response.status(418).send('mine'));
    await listen(app);
    const led = await fetch(`${url}/live`);
    expect([led.status, led.url]).to.deep.equal([200, `${url}/live/`]);
    expect((await fetch(`${url}/live/charts.js`)).status).to.equal(200);
    expect((await fetch(`${url}/live/other`)).status).to.equal(418);
    expect((await fetch(`${url}/other`)).status).to.equal(418);
  });

  it('names a wrong option', async () => {
    await serve();
    const wrong: readonly (readonly [object, string])[] = [
      [{ frameMs: 100 }, 'frameMs'],
      [{ maxViewers: 0 }, 'maxViewers'],
      [{ maxModels: 1.5 }, 'maxModels'],
      [{ maxTenants: -1 }, 'maxTenants'],
      [{ lingerMs: NaN }, 'lingerMs'],
      [{ follow: 'never' }, 'follow'],
      [{ path: 'live' }, 'path'],
      [{ title: '' }, 'title'],
    ];
    for (const [options, name] of wrong) {
      expect(() => createLivePage(source, options))
        .to.throw()
        .that.satisfies(
          (error: unknown) => isSluiceError(error) && error.code === 'invalid_option' && error.message.includes(name),
        );
    }
  });
});

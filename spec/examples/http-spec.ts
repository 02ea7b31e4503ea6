import { expect } from 'chai';
import { builtDist } from '../helpers/builtDist.ts';
import { runExample } from '../helpers/runExample.ts';

describe('examples/http', function () {
  this.timeout(60_000);
  before(builtDist);

  it('node.ts reads on after a cut, from one request to the provider', async () => {
    const output = await runExample('http/node');
    const [, cut = ''] = /^after the cut: (.+)$/m.exec(output) ?? [];
    const [, whole = ''] = /^after coming back: (.+)$/m.exec(output) ?? [];
    expect(cut).not.to.equal('');
    expect(whole.startsWith(cut) && whole.length > cut.length, `${cut} -> ${whole}`).to.equal(true);
    expect(output).to.include('done: stop');
    expect(output).to.include('once more: status 204');
    expect(output).to.include('requests to the provider: 1\n');
  });

  it('express.ts streams, refuses with a status, and hears a browser leave', async () => {
    const output = await runExample('http/express');
    expect(output).to.match(/^answer: \S/m);
    expect(output).to.match(/^while the provider is down: 503, \{"error":\{.*"code":"overloaded"/m);
    expect(output).to.match(/server: done[^]*server: failed[^]*browser: leaves after a delta[^]*server: left/);
  });

  it('hono.ts streams, for useChat too', async () => {
    const output = await runExample('http/hono');
    expect(output).to.match(/^answer: \S/m);
    expect(output).to.include('x-vercel-ai-ui-message-stream: v1');
    expect(output).to.include('chunks: start, start-step, text-start, text-delta, ');
  });

  it('nest.ts streams, and refuses with a status', async () => {
    const output = await runExample('http/nest');
    expect(output).to.match(/^answer: \S/m);
    expect(output).to.include('while the provider is down: status 503');
  });
});

import { expect } from 'chai';
import { lastValueFrom, toArray } from 'rxjs';
import { createSluice } from '../../lib/index.ts';
import type { SluiceError } from '../../lib/index.ts';
import { virtualProvider } from '../../lib/simulator/index.ts';
import type { VirtualProviderOptions } from '../../lib/simulator/index.ts';
import { virtualRuntime } from '../../lib/testing/index.ts';

const request = { model: 'm', messages: [{ role: 'user' as const, content: 'Hello' }] };
const NO_RETRY = { models: { default: { retry: { attempts: 1 } } } };

function world(options: VirtualProviderOptions, policy: Parameters<typeof createSluice>[1] = NO_RETRY) {
  const runtime = virtualRuntime();
  const provider = virtualProvider(options, runtime);
  const sluice = createSluice(provider.source, policy, { runtime });
  const ask = (): { error: SluiceError | undefined; endedMs: number | undefined; chunks: unknown[] } => {
    const seen = { error: undefined, endedMs: undefined, chunks: [] } as ReturnType<typeof ask>;
    const end = (): void => void (seen.endedMs = runtime.clock.now());
    sluice.chat(request).subscribe({
      next: (chunk) => seen.chunks.push(chunk),
      error: (error: SluiceError) => {
        seen.error = error;
        end();
      },
      complete: end,
    });
    return seen;
  };
  return { runtime, provider, sluice, ask };
}

describe('virtualProvider', () => {
  it('answers through createSluice in virtual time, after the way there and back', () => {
    const { runtime, ask } = world({ firstTokenMs: 300, tokens: 3, tokenMs: 10, networkMs: 25 });
    const answer = ask();
    runtime.run();
    expect(answer).to.include({ error: undefined, endedMs: 370 });
    const near = world({ firstTokenMs: 300, tokens: 3, tokenMs: 10, networkMs: 0 });
    const sooner = near.ask();
    near.runtime.run();
    expect(sooner.endedMs).to.equal(320);
  });

  it('sends every chunk, or the first and the rest', () => {
    const chunks = (options: VirtualProviderOptions): number => {
      const { runtime, ask } = world({ tokens: 30, ...options });
      const { chunks: got } = ask();
      runtime.run();
      return got.length;
    };
    expect(chunks({})).to.be.above(30);
    expect(chunks({ chunks: 'ends' })).to.be.below(6);
  });

  it('counts what it saw', () => {
    const { runtime, provider, ask } = world({ requestsPerMinute: 60, burstRequests: 2 });
    const answers = [ask(), ask(), ask()];
    runtime.advance(30);
    expect(provider.report()).to.deep.include({ requests: 3, admitted: 2, running: 2 });
    runtime.run();
    expect(answers.map(({ error }) => error?.code)).to.deep.equal([undefined, undefined, 'rate_limited']);
    expect(provider.report()).to.deep.equal({
      requests: 3,
      admitted: 2,
      rateLimited: 1,
      statuses: { 200: 2, 429: 1 },
      models: { m: 3 },
      running: 0,
      maxRunning: 2,
    });
  });

  it('plays a script, and counts a 429 of it too', () => {
    const { runtime, provider, ask } = world({});
    provider.script([{ kind: 'error', error: 'slow_down' }, { kind: 'malformed', after: 1 }, { kind: 'html' }]);
    const answers = [ask(), ask(), ask(), ask()];
    runtime.run();
    expect(answers.map(({ error }) => error?.code)).to.deep.equal([
      'rate_limited',
      'upstream_body_invalid',
      'server_error',
      undefined,
    ]);
    expect(provider.report().statuses).to.deep.equal({ 200: 2, 429: 1, 502: 1 });
    expect(provider.report().running).to.equal(0);
  });

  it('reads what a script sends verbatim as it is read over HTTP', () => {
    const { runtime, provider, ask } = world({});
    const whole = {
      id: 'a',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [{ index: 0, message: { role: 'assistant', content: 'whole' }, finish_reason: 'stop' }],
    };
    provider.script([
      { kind: 'reply', status: 200, body: whole },
      { kind: 'reply', status: 200, body: '<html>' },
      { kind: 'bytes', chunks: ['data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}\n\n'] },
    ]);
    const answers = [ask(), ask(), ask()];
    runtime.run();
    expect(answers.map(({ error }) => error?.code)).to.deep.equal([undefined, 'upstream_body_invalid', undefined]);
    expect(answers[0]?.chunks).to.have.length.above(0);
  });

  it('takes other limits on the way', () => {
    const { runtime, provider, ask } = world({ requestsPerMinute: 60, burstRequests: 1 });
    provider.setQuota({ account: { requestsPerMinute: 6_000, burstRequests: 100 } });
    runtime.advance(1_000);
    for (let i = 0; i < 50; i++) ask();
    runtime.run();
    expect(provider.report().rateLimited).to.equal(0);
  });

  it('answers promises where time is moved with advanceAsync', async () => {
    const { runtime, sluice } = world({ tokens: 2 });
    const answering = lastValueFrom(sluice.chat(request).pipe(toArray()));
    await runtime.advanceAsync(1_000);
    expect(await answering).to.have.length.above(2);
  });

  it('refuses options that cannot be', () => {
    const runtime = virtualRuntime();
    expect(() => virtualProvider({ networkMs: -1 }, runtime)).to.throw(/networkMs/);
    expect(() => virtualProvider({ requestsPerMinute: 0 }, runtime)).to.throw(/requestsPerMinute/);
  });
});

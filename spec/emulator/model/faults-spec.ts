import { expect } from 'chai';
import { FakeProvider } from '../../../lib/emulator/model/FakeProvider.ts';
import type { Fault, FaultPosition, FaultRule } from '../../../lib/emulator/model/faults.ts';
import type { ProviderRequest } from '../../../lib/emulator/model/request.ts';
import type { ProviderOptions } from '../../../lib/emulator/model/settings.ts';
import { encodeStep } from '../../../lib/emulator/model/steps.ts';
import type { ProviderStep } from '../../../lib/emulator/model/steps.ts';
import { virtualRuntime } from '../../../lib/testing/virtualRuntime.ts';

const base: ProviderOptions = { firstTokenMs: 50, tokenMs: 10, tokens: 4 };

function asking(changes: Record<string, unknown> = {}, api: 'chat' | 'responses' = 'chat'): ProviderRequest {
  const messages = [{ role: 'user', content: 'hello' }];
  const usage = { stream_options: { include_usage: true } };
  return { api, body: { model: 'm', stream: true, messages, input: 'hello', ...usage, ...changes } };
}

function stepsOf(fault: FaultRule, request = asking()): ProviderStep[] {
  const { steps } = new FakeProvider({ ...base, script: [fault] }, virtualRuntime().clock).handle(request);
  const out: ProviderStep[] = [];
  for (let next = steps.next(); next.done !== true && out.length < 500; next = steps.next()) out.push(next.value);
  return out;
}

/** A short word for each step, for instance `H o c c f u D .` for a whole stream. */
function drawn(fault: FaultRule, request?: ProviderRequest): string {
  const letters = { head: 'H', comment: ':', done: 'D', body: 'B', bytes: 'b', end: '.', reset: '!', hang: '~' };
  return stepsOf(fault, request)
    .map((step) => (step.kind === 'event' ? (step.part === 'fault' ? 'e' : (step.part[0] ?? '')) : letters[step.kind]))
    .join('');
}

describe('faults', () => {
  const positions: readonly [FaultPosition, string][] = [
    ['connect', ''],
    ['headers', 'H'],
    [0, 'Ho'],
    [2, 'Hocc'],
    [99, 'Hocccc'],
    ['content', 'Hocccc'],
    ['finish', 'Hoccccf'],
    ['done', 'HoccccfuD'],
  ];
  for (const [after, before] of positions) {
    it(`strikes after ${after}`, () => {
      expect(drawn({ kind: 'cut', after })).to.equal(`${before}.`);
      expect(drawn({ kind: 'reset', after })).to.equal(`${before}!`);
      expect(drawn({ kind: 'stall', after })).to.equal(`${before}~`);
    });
  }

  it('strikes in the middle of a body that is not streamed', () => {
    const whole = stepsOf({ kind: 'pass' }, asking({ stream: false }));
    const half = stepsOf({ kind: 'cut', after: 3 }, asking({ stream: false }));
    expect(drawn({ kind: 'reset', after: 'connect' }, asking({ stream: false }))).to.equal('!');
    expect(drawn({ kind: 'cut', after: 3 }, asking({ stream: false }))).to.equal('HB.');
    const lengthOf = (steps: ProviderStep[]) => encodeStep(steps[1] as ProviderStep)?.length ?? 0;
    expect(lengthOf(half)).to.equal(lengthOf(whole) >> 1);
    expect(drawn({ kind: 'stall', after: 3, forMs: 100 }, asking({ stream: false }))).to.equal('HBB.');
  });

  it('strikes right after the step before the place', () => {
    expect(stepsOf({ kind: 'cut', after: 2 }).at(-1)?.atMs).to.equal(60);
    expect(stepsOf({ kind: 'cut', after: 'headers' }).at(-1)?.atMs).to.equal(0);
    expect(stepsOf({ kind: 'in_band_error', after: 2 }).at(-1)?.atMs).to.equal(60);
  });

  it('goes on after a stall that ends, later by as much', () => {
    const steps = stepsOf({ kind: 'stall', after: 2, forMs: 1_000 });
    expect(drawn({ kind: 'stall', after: 2, forMs: 1_000 })).to.equal('HoccccfuD.');
    expect(steps.map(({ atMs }) => atMs)).to.deep.equal([0, 50, 50, 60, 1_070, 1_080, 1_080, 1_080, 1_080, 1_080]);
  });

  it('sends keep-alives while it stalls', () => {
    expect(drawn({ kind: 'stall', after: 'headers', forMs: 100, commentsEveryMs: 30 })).to.equal('H:::occccfuD.');
    expect(drawn({ kind: 'stall', after: 1, commentsEveryMs: 30 }).slice(0, 8)).to.equal('Hoc:::::');
  });

  it('delays the first token', () => {
    const steps = stepsOf({ kind: 'slow', firstTokenMs: 20_000 });
    expect(steps[0]?.atMs).to.equal(0);
    expect(steps[2]?.atMs).to.equal(20_000);
  });

  const shapes: readonly [FaultRule, string][] = [
    [{ kind: 'pass' }, 'HoccccfuD.'],
    [{ kind: 'no_done' }, 'Hoccccfu.'],
    [{ kind: 'no_done', keepOpen: true }, 'Hoccccfu~'],
    [{ kind: 'no_usage' }, 'HoccccfD.'],
    [{ kind: 'empty' }, 'H.'],
    [{ kind: 'empty', done: true }, 'HD.'],
    [{ kind: 'html' }, 'HB.'],
    [{ kind: 'error', error: 'overloaded' }, 'HB.'],
    [{ kind: 'reply', status: 503, end: 'hang', body: '' }, 'HB~'],
    [{ kind: 'reply', status: 204 }, 'H.'],
    [{ kind: 'malformed', after: 2 }, 'HoccbccfuD.'],
    [{ kind: 'huge_event', after: 1, bytes: 100_000 }, 'HocbcccfuD.'],
    [{ kind: 'finish', reason: 'content_filter', after: 1 }, 'HocfuD.'],
    [{ kind: 'in_band_error', after: 1 }, 'Hoce.'],
    [{ kind: 'in_band_error', after: 'headers', thenDone: true, end: 'hang' }, 'HeD~'],
    [{ kind: 'bytes', chunks: ['data: 1\n\n', { hex: 'ff' }, { text: 'x', repeat: 3 }], end: 'reset' }, 'Hbbbbb!'],
    [{ kind: 'flood', bytes: 100, chunkBytes: 30 }, 'HoccccfuD.'],
    [{ kind: 'pass', answer: { tokens: 1 }, also: [{ kind: 'no_usage' }, { kind: 'no_done' }] }, 'Hocf.'],
  ];
  for (const [fault, expected] of shapes) {
    it(`plays ${JSON.stringify(fault)} as ${expected}`, () => expect(drawn(fault)).to.equal(expected));
  }

  it('sends a reply verbatim', () => {
    const [head, body] = stepsOf({
      kind: 'reply',
      status: 429,
      headers: { 'Retry-After': '2' },
      body: { a: 1 },
      delayMs: 7,
    });
    expect(head).to.deep.include({ kind: 'head', status: 429, atMs: 7 });
    expect(head?.kind === 'head' && head.headers).to.include({
      'retry-after': '2',
      'content-type': 'application/json',
    });
    expect(body).to.deep.include({ kind: 'body', text: '{"a":1}' });
  });

  it('sends a page with any status', () => {
    expect(stepsOf({ kind: 'html', status: 200 })[0]).to.deep.include({ status: 200 });
    const [head] = stepsOf({ kind: 'html' });
    expect(head?.kind === 'head' && [head.status, head.headers['content-type']]).to.deep.equal([502, 'text/html']);
  });

  it('carries hint and status of an error in the words of the dialect', () => {
    const [head] = stepsOf({ kind: 'error', error: 'requests', retryAfterMs: 2_000 });
    expect(head?.kind === 'head' && head.headers).to.include({ 'retry-after': '2', 'retry-after-ms': '2000' });
    expect(stepsOf({ kind: 'error', error: 'overloaded', status: 529 })[0]).to.deep.include({ status: 529 });
  });

  const inBand: readonly [Partial<Extract<Fault, { kind: 'in_band_error' }>>, string | undefined, object][] = [
    [{ shape: 'openai' }, undefined, { error: { code: null, type: 'server_error' } }],
    [{ shape: 'numeric' }, undefined, { error: { code: 500 } }],
    [{ shape: 'top_level' }, undefined, { object: 'error' }],
    [{ shape: 'anthropic', error: 'overloaded' }, 'error', { type: 'error', error: { type: 'overloaded_error' } }],
    [{ shape: 'untyped' }, undefined, { error: {} }],
    [{ shape: 'flat' }, undefined, { type: 'error', code: 'server_error' }],
    [{ shape: 'nested' }, undefined, { type: 'error', error: { code: 'server_error' } }],
    [{ shape: 'openrouter' }, undefined, { error: { code: 500 }, choices: [{ finish_reason: 'error' }] }],
    [{ value: { any: 'thing' } }, undefined, { any: 'thing' }],
  ];
  for (const [fields, event, expected] of inBand) {
    it(`puts an error into the stream as ${JSON.stringify(fields)}`, () => {
      const step = stepsOf({ kind: 'in_band_error', after: 1, ...fields }).find(
        (one) => one.kind === 'event' && one.part === 'fault',
      );
      if (step?.kind !== 'event') return expect.fail('no error');
      expect(step.event).to.equal(event);
      expect(contains(step.value, expected)).to.equal(true);
    });
  }

  it('sends an event of exactly the size that was asked for', () => {
    const step = stepsOf({ kind: 'huge_event', after: 1, bytes: 100_000 })[3];
    expect(step && encodeStep(step)?.length).to.equal(100_000);
  });

  it('floods with exactly that much content', () => {
    const text = stepsOf({ kind: 'flood', bytes: 100, chunkBytes: 30 })
      .map((step) => JSON.stringify(step).match(/"content":"(x+)"/)?.[1] ?? '')
      .join('');
    expect(text).to.equal('x'.repeat(100));
  });

  it('changes the finish reason, or leaves it out', () => {
    const reasons = (reason: string | null) =>
      JSON.stringify(stepsOf({ kind: 'finish', reason })).match(/"finish_reason":"\w+"/g);
    expect(reasons('error')).to.deep.equal(['"finish_reason":"error"']);
    expect(reasons(null)).to.equal(null);
  });

  it('strikes in streams of the Responses API too', () => {
    const request = asking({}, 'responses');
    expect(drawn({ kind: 'pass' }, request)).to.equal('Hoooocccc' + 'ooo' + 'f.');
    expect(drawn({ kind: 'cut', after: 2 }, request)).to.equal('Hoooocc.');
    expect(drawn({ kind: 'cut', after: 'content' }, request)).to.equal('Hoooocccc' + 'ooo' + '.');
    const last = stepsOf({ kind: 'finish', reason: 'content_filter' }, request).at(-2);
    expect(last?.kind === 'event' && last.event).to.equal('response.incomplete');
    const failed = stepsOf({ kind: 'finish', reason: 'error' }, request).at(-2);
    expect(failed?.kind === 'event' && failed.event).to.equal('response.failed');
  });

  describe('script', () => {
    const kindsOf = (options: ProviderOptions, requests: readonly ProviderRequest[]) => {
      const provider = new FakeProvider(options, virtualRuntime().clock);
      return requests.map((request) => provider.handle(request).fault);
    };

    it('uses faults in order, each once or as often as it says', () => {
      const script: FaultRule[] = [{ kind: 'html', times: 2 }, { kind: 'pass' }, { kind: 'empty' }];
      const requests = Array.from({ length: 6 }, () => asking());
      expect(kindsOf({ script }, requests)).to.deep.equal(['html', 'html', undefined, 'empty', undefined, undefined]);
      expect(kindsOf({ script: [{ kind: 'html', times: 'always' }] }, requests)).to.deep.equal(Array(6).fill('html'));
    });

    it('keeps a fault for the request that it is for', () => {
      const once = (match: Partial<FaultRule>) => [{ kind: 'html', ...match } as FaultRule];
      const other = asking({ model: 'n' });
      expect(kindsOf({ script: once({ model: 'm' }) }, [other, asking()])).to.deep.equal([undefined, 'html']);
      expect(kindsOf({ script: once({ api: 'responses' }) }, [asking(), asking({}, 'responses')])[1]).to.equal('html');
      expect(kindsOf({ script: once({ conversation: 'c' }) }, [asking(), asking({ user: 'c' })])[1]).to.equal('html');
      expect(kindsOf({ script: once({ stream: false }) }, [asking(), asking({ stream: false })])[1]).to.equal('html');
      const tagged = { ...asking(), headers: { 'x-tag': 'a' } };
      expect(kindsOf({ script: once({ requestHeaders: { 'X-Tag': 'a' } }) }, [asking(), tagged])[1]).to.equal('html');
      const when = ({ promptTokens }: { promptTokens: number }) => promptTokens > 100;
      const long = asking({ messages: [{ role: 'user', content: 'x'.repeat(500) }] });
      expect(kindsOf({ script: once({ when }) }, [asking(), long])).to.deep.equal([undefined, 'html']);
    });

    it('keeps a fault while the quota refuses', () => {
      const options: ProviderOptions = {
        requestsPerMinute: 60,
        burstRequests: 1,
        script: [{ kind: 'pass' }, { kind: 'html' }],
      };
      const runtime = virtualRuntime();
      const provider = new FakeProvider(options, runtime.clock);
      provider.handle(asking());
      expect(provider.handle(asking()).verdict).to.equal('refused');
      expect(provider.scriptLeft).to.equal(1);
      runtime.advance(1_000);
      expect(provider.handle(asking()).fault).to.equal('html');
    });

    it('refuses a prefix only where there is one', () => {
      const prefixed = asking({
        messages: [
          { role: 'user', content: 'a' },
          { role: 'assistant', content: 'b' },
        ],
      });
      expect(kindsOf({ script: [{ kind: 'refuse_prefix' }] }, [asking(), prefixed])).to.deep.equal([
        undefined,
        'refuse_prefix',
      ]);
      expect(stepsOf({ kind: 'refuse_prefix' }, prefixed)[0]).to.deep.include({ status: 400 });
    });

    it('strikes by chance, as often as it says and the same for the same seed', () => {
      const requests = Array.from({ length: 1_000 }, () => asking());
      const randomFaults = [{ kind: 'html', probability: 0.2 } as const];
      const first = kindsOf({ randomFaults, seed: 5 }, requests);
      expect(kindsOf({ randomFaults, seed: 5 }, requests)).to.deep.equal(first);
      expect(kindsOf({ randomFaults, seed: 6 }, requests)).not.to.deep.equal(first);
      expect(first.filter((kind) => kind === 'html').length).to.be.within(150, 250);
    });

    it('fails every request of an outage, and none before or after', () => {
      const runtime = virtualRuntime();
      const outages = [{ kind: 'error', error: 'overloaded', model: 'm', fromMs: 1_000, toMs: 2_000 } as const];
      const provider = new FakeProvider({ outages }, runtime.clock);
      const verdictAt = (ms: number, request = asking()) => {
        runtime.advance(ms - runtime.clock.now());
        return provider.handle(request).verdict;
      };
      expect(verdictAt(999)).to.equal('admitted');
      expect(verdictAt(1_000)).to.equal('outage');
      expect(verdictAt(1_500, asking({ model: 'n' }))).to.equal('admitted');
      expect(verdictAt(1_999)).to.equal('outage');
      expect(verdictAt(2_000)).to.equal('admitted');
    });
  });

  describe('checks', () => {
    const wrong: readonly [unknown, RegExp][] = [
      ['no list', /^script must be a list of faults/],
      [[5], /^script\[0\] must be an object/],
      [[{ kind: 'pass' }, { kind: 'cut', after: -1 }], /^script\[1\]\.after must be/],
      [[{ kind: 'cut', after: 'soon' }], /^script\[0\]\.after must be one of/],
      [[{ kind: 'malformed', after: 'connect' }], /^script\[0\]\.after must be one of headers, content, finish, done/],
      [[{ kind: 'huge_event', after: 'connect', bytes: 9 }], /^script\[0\]\.after must be one of headers/],
      [[{ kind: 'in_band_error', after: 'connect' }], /^script\[0\]\.after must be one of headers/],
      [[{ kind: 'cut', afterChunks: 3, after: 1 }], /^script\[0\]\.afterChunks must be absent/],
      [[{ kind: 'reply' }], /^script\[0\]\.status must be given/],
      [[{ kind: 'reply', status: 999 }], /^script\[0\]\.status must be a status/],
      [[{ kind: 'reply', status: 200, headers: { a: 1 } }], /^script\[0\]\.headers must be names with strings/],
      [[{ kind: 'error', error: 'odd' }], /^script\[0\]\.error must be one of/],
      [[{ kind: 'pass', times: 0 }], /^script\[0\]\.times must be/],
      [[{ kind: 'pass', probability: 1 }], /^script\[0\]\.probability must be absent/],
      [[{ kind: 'bytes', chunks: [{ hex: 'f' }] }], /^script\[0\]\.chunks must be/],
      [[{ kind: 'pass', answer: { tokens: -1 } }], /^script\[0\]\.answer\.tokens must be/],
      [[{ kind: 'pass', also: [{ kind: 'cut' }] }], /^script\[0\]\.also\[0\]\.after must be given/],
      [[{ kind: 'pass', toString: 1 }], /^script\[0\]\.toString must be absent/],
    ];
    for (const [script, message] of wrong) {
      it(`refuses ${JSON.stringify(script)}`, () => {
        const provider = new FakeProvider({}, virtualRuntime().clock);
        expect(() => provider.script(script as FaultRule[])).to.throw(message);
      });
    }
  });
});

/** Whether `value` has everything that `part` has. */
function contains(value: unknown, part: unknown): boolean {
  if (typeof part !== 'object' || part === null) return value === part;
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(part).every(([key, inner]) => contains((value as Record<string, unknown>)[key], inner));
}

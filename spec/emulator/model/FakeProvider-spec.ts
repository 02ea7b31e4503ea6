import { expect } from 'chai';
import fc from 'fast-check';
import type { Exchange } from '../../../lib/emulator/model/Exchange.ts';
import { FakeProvider } from '../../../lib/emulator/model/FakeProvider.ts';
import type { ProviderRequest } from '../../../lib/emulator/model/request.ts';
import type { ProviderOptions } from '../../../lib/emulator/model/settings.ts';
import type { ProviderStep } from '../../../lib/emulator/model/steps.ts';
import { virtualRuntime } from '../../../lib/testing/virtualRuntime.ts';
import { isSluiceError } from '../../../lib/core/errors.ts';

const hello: ProviderRequest = {
  api: 'chat',
  body: { model: 'm', stream: true, messages: [{ role: 'user', content: 'hello' }] },
};

function asking(changes: Record<string, unknown>): ProviderRequest {
  return { ...hello, body: { ...hello.body, ...changes } };
}

function start(options: ProviderOptions = {}) {
  const runtime = virtualRuntime();
  const provider = new FakeProvider(options, runtime.clock);
  return { runtime, provider, ask: (request = hello) => provider.handle(request) };
}

function played({ steps }: Exchange): ProviderStep[] {
  const out: ProviderStep[] = [];
  for (let next = steps.next(); next.done !== true; next = steps.next()) out.push(next.value);
  return out;
}

function headOf(exchange: Exchange) {
  const [head] = played(exchange);
  if (head?.kind !== 'head') throw new Error('the first step is no head');
  return head;
}

function bodyOf(exchange: Exchange): { error: Record<string, unknown> } {
  const body = played(exchange).find((step) => step.kind === 'body');
  return JSON.parse(body?.kind === 'body' ? body.text : 'null') as { error: Record<string, unknown> };
}

describe('FakeProvider', () => {
  describe('quota', () => {
    it('admits a burst and one request a second after it, and refuses one request too many', () => {
      const { runtime, ask } = start({ requestsPerMinute: 60, burstRequests: 8 });
      const verdicts = Array.from({ length: 9 }, () => ask().verdict);
      expect(verdicts.filter((verdict) => verdict === 'admitted')).to.have.length(8);
      expect(verdicts[8]).to.equal('refused');
      runtime.advance(1_000);
      expect(ask().verdict).to.equal('admitted');
      expect(ask().verdict).to.equal('refused');
    });

    it('defaults to a burst of one second of requests, at least 1, and of one minute of tokens', () => {
      const burstOf = (options: ProviderOptions) => {
        const { ask } = start(options);
        return Array.from({ length: 100 }, () => ask().verdict).filter((verdict) => verdict === 'admitted').length;
      };
      expect(burstOf({ requestsPerMinute: 600 })).to.equal(10);
      expect(burstOf({ requestsPerMinute: 6 })).to.equal(1);
      // 6 tokens of prompt and 14 of output each.
      expect(burstOf({ tokensPerMinute: 200, reservedOutputTokens: 14 })).to.equal(10);
      expect(burstOf({ tokensPerMinute: 200, burstTokens: 40, reservedOutputTokens: 14 })).to.equal(2);
    });

    it('lets a refused request use up the refill, unless told not to', () => {
      const verdictAfterEarlyTry = (countRejected: boolean) => {
        const { runtime, ask } = start({ requestsPerMinute: 60, burstRequests: 1, countRejected });
        ask();
        runtime.advance(900);
        expect(ask().verdict).to.equal('refused');
        runtime.advance(100);
        return ask().verdict;
      };
      expect(verdictAfterEarlyTry(true)).to.equal('refused');
      expect(verdictAfterEarlyTry(false)).to.equal('admitted');
    });

    it('keeps the promise of its retry-after-ms, with refused requests counted or not', () => {
      fc.assert(
        fc.property(
          fc.integer({ min: 1, max: 6_000 }),
          fc.integer({ min: 1, max: 20 }),
          fc.integer({ min: 1_000, max: 100_000 }),
          fc.array(fc.integer({ min: 0, max: 2_000 }), { minLength: 5, maxLength: 40 }),
          fc.boolean(),
          (requestsPerMinute, burstRequests, tokensPerMinute, gapsMs, countRejected) => {
            const { runtime, ask } = start({ requestsPerMinute, burstRequests, tokensPerMinute, countRejected });
            for (const gapMs of gapsMs) {
              runtime.advance(gapMs);
              const exchange = ask();
              if (exchange.verdict === 'admitted') continue;
              const waitMs = Number(headOf(exchange).headers['retry-after-ms']);
              expect(waitMs).to.be.within(0, 2 ** 31);
              runtime.advance(waitMs);
              expect(ask().verdict).to.equal('admitted');
            }
          },
        ),
        { numRuns: 50 },
      );
    });

    it('never admits above the quota in any span, whatever the arrivals', () => {
      fc.assert(
        fc.property(
          fc.integer({ min: 6, max: 6_000 }),
          fc.integer({ min: 1, max: 20 }),
          fc.array(fc.integer({ min: 0, max: 500 }), { maxLength: 120 }),
          (requestsPerMinute, burstRequests, gapsMs) => {
            const { runtime, ask } = start({ requestsPerMinute, burstRequests });
            const admittedMs: number[] = [];
            for (const gapMs of gapsMs) {
              runtime.advance(gapMs);
              if (ask().verdict === 'admitted') admittedMs.push(runtime.clock.now());
            }
            admittedMs.forEach((fromMs, first) => {
              admittedMs.slice(first).forEach((atMs, more) => {
                expect(more + 1).to.be.at.most(burstRequests + ((atMs - fromMs) * requestsPerMinute) / 60_000 + 1e-3);
              });
            });
          },
        ),
        { numRuns: 50 },
      );
    });

    it('reserves the prompt and the output limit of each choice', () => {
      const { ask } = start({ tokensPerMinute: 1_000, dialect: 'openai' });
      // 6 tokens of prompt, 2 choices of 100.
      expect(headOf(ask(asking({ max_tokens: 100, n: 2 }))).headers['x-ratelimit-remaining-tokens']).to.equal('794');
      expect(headOf(ask(asking({ max_completion_tokens: 94 }))).headers['x-ratelimit-remaining-tokens']).to.equal(
        '694',
      );
    });

    it('refuses a request above the burst of tokens for good', () => {
      const { ask } = start({ tokensPerMinute: 1_000 });
      const refused = ask(asking({ max_tokens: 2_000 }));
      expect(refused.refusal).to.equal('too_large');
      expect(headOf(refused).headers).not.to.have.property('retry-after-ms');
      expect(bodyOf(ask(asking({ max_tokens: 2_000 }))).error['message']).to.match(/Limit 1000, Requested 2006/);
    });

    it('takes from account and model, or from neither', () => {
      const { runtime, ask } = start({
        requestsPerMinute: 60,
        burstRequests: 3,
        countRejected: false,
        models: { a: { requestsPerMinute: 60, burstRequests: 1 }, b: {} },
      });
      expect(ask(asking({ model: 'a' })).verdict).to.equal('admitted');
      expect(ask(asking({ model: 'a' })).verdict).to.equal('refused');
      expect(ask(asking({ model: 'b' })).verdict).to.equal('admitted');
      expect(ask(asking({ model: 'b' })).verdict).to.equal('admitted');
      expect(ask(asking({ model: 'b' })).verdict).to.equal('refused');
      runtime.advance(1_000);
      expect(ask(asking({ model: 'b' })).verdict).to.equal('admitted');
    });

    it('reports the tighter of account and model, and asks for the longer of their waits', () => {
      for (const [account, model] of [
        [6, 60],
        [60, 6],
      ] as const) {
        const { ask } = start({
          requestsPerMinute: account,
          tokensPerMinute: account * 1_000,
          models: { m: { requestsPerMinute: model, tokensPerMinute: model * 1_000 } },
        });
        const { headers } = headOf(ask(asking({ max_tokens: 94 })));
        expect(headers['x-ratelimit-remaining-tokens']).to.equal('5900');
        expect(headOf(ask()).headers['retry-after-ms']).to.equal('10000');
      }
    });

    it('corrects the reservation to what was used with `settle: usage`, and not with `reserved`', () => {
      const remainingAfterOne = (settle: 'usage' | 'reserved') => {
        const { ask } = start({ tokensPerMinute: 1_000, settle, tokens: 10 });
        const first = ask(asking({ max_tokens: 500 }));
        played(first);
        first.end();
        first.end();
        return headOf(ask(asking({ max_tokens: 1 }))).headers['x-ratelimit-remaining-tokens'];
      };
      expect(remainingAfterOne('reserved')).to.equal('487');
      expect(remainingAfterOne('usage')).to.equal('977');
    });

    it('changes quota at run time, down and up again', () => {
      const { runtime, provider, ask } = start({ requestsPerMinute: 600, burstRequests: 10 });
      provider.setQuota({ account: { requestsPerMinute: 60, burstRequests: 1 } });
      expect(ask().verdict).to.equal('admitted');
      expect(ask().verdict).to.equal('refused');
      provider.setQuota({ account: { requestsPerMinute: 600, burstRequests: 10 } });
      runtime.advance(1_000);
      expect(
        Array.from({ length: 11 }, () => ask().verdict).filter((verdict) => verdict === 'admitted'),
      ).to.have.length(10);
      provider.setQuota({ models: { m: { requestsPerMinute: 1 } }, account: { requestsPerMinute: undefined } });
      expect(ask().verdict).to.equal('admitted');
      expect(ask().refusal).to.equal('requests');
    });

    it('shares the quota with a hidden client', () => {
      const { runtime, ask } = start({
        requestsPerMinute: 60,
        burstRequests: 1,
        noiseShare: 0.5,
        countRejected: false,
      });
      ask();
      runtime.advance(1_000);
      expect(ask().verdict).to.equal('refused');
      runtime.advance(1_000);
      expect(ask().verdict).to.equal('admitted');
    });

    it('bounds what runs at once, for the account and for a model, until the exchange ends', () => {
      const { provider, ask } = start({
        maxConcurrent: 2,
        concurrencyStatus: 503,
        models: { m: { maxConcurrent: 1 }, other: {} },
      });
      const first = ask();
      expect(ask().refusal).to.equal('concurrency');
      expect(ask(asking({ model: 'other' })).verdict).to.equal('admitted');
      expect(headOf(ask(asking({ model: 'other' }))).status).to.equal(503);
      expect(provider.running).to.equal(2);
      first.end();
      first.end();
      expect(provider.running).to.equal(1);
      expect(ask().verdict).to.equal('admitted');
    });
  });

  describe('requests', () => {
    const refusals: readonly [string, ProviderOptions, Record<string, unknown>, number, string | null][] = [
      ['without a model', {}, { model: undefined }, 400, null],
      ['without messages', {}, { messages: [] }, 400, null],
      ['for a model there is not', { models: { other: {} } }, {}, 404, 'model_not_found'],
      ['above the context', { contextTokens: 100 }, { max_tokens: 100 }, 400, 'context_length_exceeded'],
      [
        'that ends with the assistant, where that is refused',
        { acceptsPrefix: false },
        { messages: [{ role: 'assistant', content: 'I' }] },
        400,
        null,
      ],
    ];
    for (const [what, options, changes, status, code] of refusals) {
      it(`answers ${status} to a request ${what}`, () => {
        const { ask } = start(options);
        expect(headOf(ask(asking(changes))).status).to.equal(status);
        const { error } = bodyOf(ask(asking(changes)));
        expect(error).to.include({ type: 'invalid_request_error', code });
      });
    }

    it('reads the conversation from header, metadata or user, in this order', () => {
      const { ask } = start();
      const metadata = { conversation: 'from-metadata' };
      const request = asking({ metadata, user: 'from-user' });
      expect(ask({ ...request, headers: { 'x-conversation': 'from-header' } }).conversation).to.equal('from-header');
      expect(ask(request).conversation).to.equal('from-metadata');
      expect(ask(asking({ user: 'from-user' })).conversation).to.equal('from-user');
      expect(ask().conversation).to.equal(undefined);
    });
  });

  describe('timing', () => {
    it('sends the head, then the first token, then one chunk each cadence', () => {
      const { ask } = start({ headersMs: 20, firstTokenMs: 100, tokenMs: 10, tokens: 5, chunkTokens: 2 });
      const steps = played(ask()).map((step) => `${step.kind === 'event' ? step.part : step.kind}@${step.atMs}`);
      expect(steps).to.deep.equal([
        'head@20',
        'opening@100',
        'content@100',
        'content@120',
        'content@140',
        'finish@140',
        'done@140',
        'end@140',
      ]);
    });

    it('answers in one piece when the last token would have come', () => {
      const { ask } = start({ firstTokenMs: 100, tokenMs: 10, tokens: 5 });
      expect(played(ask(asking({ stream: false }))).map(({ kind, atMs }) => [kind, atMs])).to.deep.equal([
        ['head', 140],
        ['body', 140],
        ['end', 140],
      ]);
    });

    it('draws log-normal latencies around the median, the same for the same seed', () => {
      const draw = (seed: number) => {
        const { ask } = start({ seed, firstTokenMs: { median: 100, sigma: 0.5, max: 300 }, tokens: 1 });
        return Array.from({ length: 400 }, () => played(ask())[1]?.atMs ?? 0);
      };
      const drawn = draw(1);
      expect(draw(1)).to.deep.equal(drawn);
      expect(draw(2)).not.to.deep.equal(drawn);
      expect(Math.max(...drawn)).to.be.at.most(300);
      expect(drawn.filter((ms) => ms < 100).length).to.be.within(160, 240);
    });

    it('takes settings of the model over those of the provider', () => {
      const { ask } = start({ tokens: 5, firstTokenMs: 10, models: { m: { tokens: 2 }, n: {} } });
      const contents = (exchange: Exchange) =>
        played(exchange).filter((step) => step.kind === 'event' && step.part === 'content').length;
      expect(contents(ask())).to.equal(2);
      expect(contents(ask(asking({ model: 'n' })))).to.equal(5);
    });

    it('brings only the ends of a stream with `chunks: ends`, at the same instants and with the same text', () => {
      const textOf = (steps: readonly ProviderStep[]) =>
        JSON.stringify(steps)
          .match(/"content\\?":"[^"]*"/g)
          ?.join('')
          .replace(/"content":"|"/g, '');
      const all = played(start({ tokens: 50 }).ask());
      const ends = played(start({ tokens: 50, chunks: 'ends' }).ask());
      const contents = ends.filter((step) => step.kind === 'event' && step.part === 'content');
      expect(contents).to.have.length(2);
      expect(textOf(ends)).to.equal(textOf(all));
      expect(ends.at(-1)?.atMs).to.equal(all.at(-1)?.atMs);
      expect(contents[0]?.atMs).to.equal(50);
      expect(ends.map(({ kind }) => kind)).to.deep.equal(['head', 'event', 'event', 'done', 'end']);
    });

    it('finishes a stream alone with `chunks: ends` where its last content is long there, or there is none', () => {
      const kinds = (options: ProviderOptions) =>
        played(start({ chunks: 'ends', ...options }).ask()).map((step) =>
          step.kind === 'event' ? step.part : step.kind,
        );
      expect(kinds({ tokens: 5, chunkTokens: 8 })).to.deep.equal(['head', 'content', 'finish', 'done', 'end']);
      expect(kinds({ tokens: 0 })).to.deep.equal(['head', 'finish', 'done', 'end']);
    });

    it('brings every chunk of a stream that has a fault, also with `chunks: ends`', () => {
      const { ask } = start({ chunks: 'ends', script: [{ kind: 'cut', after: 40 }] });
      const contents = played(ask()).filter((step) => step.kind === 'event' && step.part === 'content');
      expect(contents).to.have.length(40);
    });

    it('makes the steps of a long stream only as they are asked for', () => {
      const { ask } = start({ tokens: 1e9 });
      const { steps } = ask();
      for (let i = 0; i < 10; i++) steps.next();
      expect(steps.next().done).to.equal(false);
    });
  });

  describe('options', () => {
    const wrong: readonly [string, ProviderOptions][] = [
      ['requestsPerMinute', { requestsPerMinute: 0 }],
      ['burstRequests', { requestsPerMinute: 1, burstRequests: Number.NaN }],
      ['tokensPerMinute', { tokensPerMinute: -1 }],
      ['burstTokens', { burstTokens: 0 }],
      ['noiseShare', { noiseShare: 1.5 }],
      ['firstTokenMs', { firstTokenMs: -1 }],
      ['tokenMs.sigma', { tokenMs: { median: 1, sigma: Number.NaN } }],
      ['tokens', { tokens: Infinity }],
      ['chunkTokens', { chunkTokens: 0 }],
      ['reasoningTokens', { reasoningTokens: 0.5 }],
      ['maxConcurrent', { maxConcurrent: 0 }],
      ['contextTokens', { contextTokens: 0 }],
      ['reservedOutputTokens', { reservedOutputTokens: -1 }],
      ['models.m.tokensPerMinute', { models: { m: { tokensPerMinute: 0 } } }],
      ['dialect', { dialect: 'klingon' }],
      ['seed', { seed: 0.5 }],
      ['settle', { settle: 'never' as 'usage' }],
      ['chunks', { chunks: 'some' as 'all' }],
      ['concurrencyStatus', { concurrencyStatus: 500 as 503 }],
      ['script[0].kind', { script: [{ kind: 'nonsense' as 'pass' }] }],
      ['randomFaults[0].probability', { randomFaults: [{ kind: 'pass', probability: 2 }] }],
      ['outages[0].fromMs', { outages: [{ kind: 'pass', fromMs: -1, toMs: 5 }] }],
    ];
    for (const [name, options] of wrong) {
      it(`refuses a wrong ${name} by name`, () => {
        try {
          start(options);
        } catch (error) {
          expect(isSluiceError(error) && error.code).to.equal('invalid_option');
          expect((error as Error).message).to.match(new RegExp(`^${name.replace(/[[\].]/g, '\\$&')} must be`));
          return;
        }
        expect.fail('accepted');
      });
    }

    it('refuses a wrong change of quota and a wrong script, and changes nothing', () => {
      const { provider, ask } = start({ requestsPerMinute: 60, script: [{ kind: 'html' }] });
      expect(() => provider.setQuota({ account: { requestsPerMinute: -5 } })).to.throw(/account\.requestsPerMinute/);
      expect(() => provider.script([{ kind: 'cut' } as never])).to.throw(/script\[0\]\.after must be given/);
      expect(ask().fault).to.equal('html');
    });
  });
});

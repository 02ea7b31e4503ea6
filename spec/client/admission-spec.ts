import { expect } from 'chai';
import OpenAI from 'openai';
import { createSluice } from '../../lib/client/createSluice.ts';
import type { CallOptions } from '../../lib/client/CallOptions.ts';
import type { Sluice } from '../../lib/client/Sluice.ts';
import type { SluiceEvent } from '../../lib/core/events.ts';
import { currentScope } from '../../lib/core/currentScope.ts';
import { startEmulator } from '../../lib/emulator/index.ts';
import { text } from '../../lib/operators/text.ts';
import { withDeadline } from '../../lib/operators/withDeadline.ts';
import type { PolicyInput } from '../../lib/policy/PolicyInput.ts';
import { virtualRuntime } from '../../lib/testing/index.ts';
import type { VirtualRuntime } from '../../lib/testing/index.ts';
import { fakeProvider } from '../helpers/fakeProvider.ts';
import type { FakeProvider, Reply } from '../helpers/fakeProvider.ts';
import { recording } from '../helpers/scripted.ts';
import type { Recording } from '../helpers/scripted.ts';

const messages = [{ role: 'user' as const, content: 'Hello' }];

describe('createSluice and what it shares', () => {
  let runtime: VirtualRuntime;
  let main: FakeProvider;
  let other: FakeProvider;
  let sluice: Sluice;
  let events: SluiceEvent[];

  type Replies = (model: string, index: number) => Reply;
  function start(policy: PolicyInput, mains?: Replies, others?: Replies): void {
    runtime = virtualRuntime();
    main = fakeProvider(runtime, mains);
    other = fakeProvider(runtime, others);
    sluice = createSluice({ main: main.source, other: other.source }, policy, { runtime });
    events = [];
    sluice.events$.subscribe((event) => events.push(event));
  }
  const ask = (options: CallOptions = {}): Recording<string> =>
    recording(sluice.chat({ model: 'a', messages }, options as CallOptions & { restarts?: false }).pipe(text()));
  const deployments = [{ client: 'main' }, { client: 'other', model: 'a-eu' }];

  describe('several deployments', () => {
    it('share the load', () => {
      start({ models: { a: { deployments } } });
      const calls = Array.from({ length: 10 }, () => ask());
      runtime.run();
      expect(calls.every(({ done }) => done)).to.equal(true);
      expect(main.seen).to.have.length(5);
      expect(new Set(other.models())).to.deep.equal(new Set(['a-eu']));
      expect(other.seen).to.have.length(5);
    });

    for (const code of ['rate_limited', 'quota_exhausted'] as const) {
      it(`stand in for one that is ${code}, at once and in the same call`, () => {
        const failing: Replies = () => ({ error: code, fields: { status: 429, retryAfterMs: 600_000 } });
        start({ models: { a: { deployments, retry: { attempts: 1 } } } }, failing, () => ({}));
        const call = ask();
        runtime.advance(200);
        expect(call.values).to.deep.equal(['a-eu']);
        expect(
          events
            .filter(({ type }) => type === 'attempt.started')
            .map(({ attempt }) => attempt)
            .at(-1),
        ).to.equal(main.seen.length + other.seen.length);
      });
    }

    it('pass on what the first one said where the others are at their limits too', () => {
      const failing: Replies = () => ({ error: 'quota_exhausted', fields: { status: 429 } });
      start({ models: { a: { deployments, retry: { attempts: 1 } } } }, failing, failing);
      const call = ask();
      runtime.advance(200);
      expect(call.error?.code).to.equal('quota_exhausted');
      expect(call.error?.attempts).to.have.length(2);
    });
  });

  it('keeps tenants to their ceilings', () => {
    start({ tenants: { small: { maxInFlight: 1 } } });
    for (let i = 0; i < 3; i++) ask({ tenant: 'small' });
    for (let i = 0; i < 3; i++) ask({ tenant: 'large' });
    expect(main.seen).to.have.length(4);
    expect(sluice.snapshot().admission.tenants['small']).to.deep.equal({ inFlight: 1, waiting: 2 });
    expect(sluice.snapshot().callsByTenant).to.deep.equal({ small: 3, large: 3 });
    runtime.run();
    expect(main.seen).to.have.length(6);
  });

  it('lets the more urgent priority go first', () => {
    start({ maxInFlight: 1 });
    const order: string[] = [];
    for (const priority of ['batch', 'batch', 'interactive']) {
      sluice.chat({ model: 'a', messages }, { priority }).subscribe({ complete: () => order.push(priority) });
    }
    runtime.run();
    expect(order).to.deep.equal(['batch', 'interactive', 'batch']);
  });

  it('gives a priority that has waited for priorities.ageingMs its turns', () => {
    const placeOf = (ageingMs: number | null): number => {
      start({ maxInFlight: 1, deadlineMs: null, quota: { account: { maxWaitMs: null } }, priorities: { ageingMs } });
      const order: string[] = [];
      for (const priority of ['interactive', 'batch', ...Array<string>(40).fill('interactive')]) {
        sluice.chat({ model: 'a', messages }, { priority }).subscribe({ complete: () => order.push(priority) });
      }
      runtime.run();
      return order.indexOf('batch');
    };
    expect(placeOf(null)).to.equal(41);
    expect(placeOf(10)).to.be.below(10);
    expect(placeOf(300)).to.be.within(15, 24);
  });

  it('lets small requests pass a large one within quota.account.passShare', () => {
    const startOf = (passShare: number): number => {
      const account = { tokensPerMinute: 6000, maxWaitMs: null, passShare };
      start({ deadlineMs: null, quota: { account } });
      sluice.chat({ model: 'a', messages }, { cost: 5500 }).subscribe();
      sluice.chat({ model: 'large', messages }, { cost: 5000 }).subscribe();
      for (let i = 0; i < 300; i++) {
        sluice.chat({ model: 'a', messages }, { cost: 100 }).subscribe();
        runtime.advance(500);
      }
      return main.seen.find(({ model }) => model === 'large')?.atMs ?? Infinity;
    };
    expect(startOf(0)).to.be.within(45_000, 46_000);
    expect(startOf(0.1)).to.be.within(48_000, 52_000);
    expect(startOf(0.5)).to.be.within(60_000, 80_000);
  });

  it('leaves an account that has run out alone for its exhaustedMs, or that around it', () => {
    const answeredAfter = (account: number, own: number | undefined): number => {
      const quota = {
        account: { exhaustedMs: account },
        clients: { main: own === undefined ? {} : { exhaustedMs: own } },
      };
      start({ quota, models: { default: { retry: { attempts: 1 } } } }, (_, index) =>
        index === 0 ? { error: 'quota_exhausted', fields: { status: 429 } } : {},
      );
      for (let atMs = 0; atMs < 30_000; atMs += 1000) {
        const call = ask();
        runtime.advance(1000);
        if (call.done) return atMs;
      }
      return Infinity;
    };
    expect(answeredAfter(5500, undefined)).to.equal(6000);
    expect(answeredAfter(5500, 2500)).to.equal(3000);
  });

  it('refuses what a dead model would be asked, and asks its fallback', () => {
    const policy = {
      models: { a: { fallback: ['b'], breaker: { consecutiveFailures: 2 }, retry: { attempts: 1 } }, default: {} },
    };
    start(policy, (model) => (model === 'a' ? { error: 'server_error', fields: { status: 500 } } : {}));
    const answers: Recording<string>[] = [];
    for (let i = 0; i < 5; i++) {
      answers.push(ask());
      runtime.advance(100);
    }
    expect(answers.map(({ values }) => values)).to.deep.equal(Array(5).fill(['b']));
    expect(main.models().filter((model) => model === 'a')).to.have.length(2);
  });

  it('gives up everything when a call is left while it waits', () => {
    start({ maxInFlight: 1 }, () => ({ hangs: true }));
    const running = ask({ conversation: 'c' });
    const [inLane, inQueue] = [ask({ conversation: 'c' }), ask()];
    expect(sluice.snapshot().conversations).to.deep.equal({ conversations: 1, waiting: 1 });
    for (const { subscription } of [inLane, inQueue, running]) subscription.unsubscribe();
    const { calls, conversations, admission } = sluice.snapshot();
    expect(calls).to.equal(0);
    expect(conversations).to.deep.equal({ conversations: 0, waiting: 0 });
    expect(admission).to.include({ inFlight: 0, waiting: 0 });
    runtime.run();
    expect(runtime.pending).to.equal(0);
  });

  it('holds to a deadline that stands outside', () => {
    start({}, () => ({ hangs: true }));
    const call = recording(sluice.chat({ model: 'a', messages }).pipe(withDeadline(50, { runtime })));
    runtime.advance(60);
    expect(call.error?.code).to.equal('timeout_deadline');
  });

  it('runs its consumer in the frame of the consumer, and nested calls as calls of their own', () => {
    start({});
    const frames: unknown[] = [];
    sluice.chat({ model: 'a', messages }).subscribe({
      next: () => frames.push(currentScope()),
      complete: () => sluice.chat({ model: 'a', messages }).subscribe(),
    });
    runtime.run();
    expect(new Set(frames)).to.deep.equal(new Set([undefined]));
    const ids = events.filter(({ type }) => type === 'call.ended').map(({ callId }) => callId);
    expect(new Set(ids).size).to.equal(2);
    expect(ids).to.have.length(2);
  });

  it('sends attempts inside what the observer puts around them', () => {
    runtime = virtualRuntime();
    main = fakeProvider(runtime);
    const around: unknown[] = [];
    const source: typeof main.source = (attempt) => {
      currentScope()?.around(() => around.push('inside'));
      return main.source(attempt);
    };
    sluice = createSluice(
      source,
      {},
      {
        runtime,
        telemetry: {
          around: (of, work) => {
            around.push(of);
            return work();
          },
        },
      },
    );
    ask();
    runtime.run();
    expect(around[0]).to.have.all.keys('callId', 'attempt');
    expect(around.at(-1)).to.equal('inside');
  });

  describe('call', () => {
    it('asks the client of the model, under the same limits, and cancels by its signal', async () => {
      const emulator = await startEmulator({ recordBodies: true });
      try {
        const openai = new OpenAI({ apiKey: 'key', baseURL: emulator.baseURL, maxRetries: 0 });
        sluice = createSluice(openai, { models: { default: { retry: { baseMs: 1 } } } });
        emulator.script([{ kind: 'error', error: 'server_error' }]);
        const embed = sluice.call('e', (client, signal, model) =>
          client.embeddings.create({ model, input: ['one'] }, { signal, maxRetries: 0 }),
        );
        const vectors = await new Promise<number>((resolve, reject) => {
          embed.subscribe({ next: ({ data }) => resolve(data.length), error: reject });
        });
        expect(vectors).to.equal(1);
        expect(emulator.report().requests).to.equal(2);
        let given: AbortSignal | undefined;
        const waiting = sluice.call('e', (_, signal) => new Promise<never>(() => (given = signal))).subscribe();
        waiting.unsubscribe();
        expect(given?.aborted ?? true).to.equal(true);
      } finally {
        await emulator.close();
      }
    });

    it('needs an SDK client', () => {
      start({});
      const call = recording(sluice.call('a', () => Promise.resolve(1)));
      runtime.run();
      expect(call.error?.code).to.equal('invalid_request');
    });
  });
});

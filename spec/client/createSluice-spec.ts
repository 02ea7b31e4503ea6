import { expect } from 'chai';
import { of } from 'rxjs';
import { createSluice } from '../../lib/client/createSluice.ts';
import type { CallOptions } from '../../lib/client/CallOptions.ts';
import type { Sluice } from '../../lib/client/Sluice.ts';
import type { SluiceOptions } from '../../lib/client/SluiceOptions.ts';
import type { SluiceEvent } from '../../lib/core/events.ts';
import { isRestart } from '../../lib/core/restart.ts';
import { text } from '../../lib/operators/text.ts';
import type { PolicyInput } from '../../lib/policy/PolicyInput.ts';
import { virtualRuntime } from '../../lib/testing/index.ts';
import type { VirtualRuntime } from '../../lib/testing/index.ts';
import { fakeProvider } from '../helpers/fakeProvider.ts';
import type { FakeProvider, Reply } from '../helpers/fakeProvider.ts';
import { recording, thrown } from '../helpers/scripted.ts';
import type { Recording } from '../helpers/scripted.ts';

const messages = [{ role: 'user' as const, content: 'Hello' }];
const BAD: Reply = { error: 'server_error', fields: { status: 500 } };

describe('createSluice', () => {
  let runtime: VirtualRuntime;
  let provider: FakeProvider;
  let sluice: Sluice;
  let events: SluiceEvent[];

  function start(policy: PolicyInput, replyTo?: Parameters<typeof fakeProvider>[1], options: SluiceOptions = {}): void {
    runtime = virtualRuntime();
    provider = fakeProvider(runtime, replyTo);
    sluice = createSluice(provider.source, policy, { runtime, ...options });
    events = [];
    sluice.events$.subscribe((event) => events.push(event));
  }
  const ask = (options: CallOptions = {}, model = 'a'): Recording<string> =>
    recording(sluice.chat({ model, messages }, options as CallOptions & { restarts?: false }).pipe(text()));
  const types = (): string[] => events.map(({ type }) => type);

  afterEach(() => {
    runtime?.run();
    expect(runtime?.pending ?? 0, 'timers left').to.equal(0);
    expect(provider.open, 'attempts left').to.equal(0);
    expect(sluice.snapshot().calls, 'calls left').to.equal(0);
  });

  it('answers a streamed and a whole chat completion', () => {
    start({});
    const streamed = ask();
    const whole = recording(sluice.complete({ model: 'a', messages }));
    runtime.run();
    expect(streamed.values).to.deep.equal(['a']);
    expect(streamed.done).to.equal(true);
    expect(whole.values[0]?.choices[0]?.message.content).to.equal('a');
  });

  it('does nothing before it is subscribed to, and makes a call of each subscription', () => {
    start({});
    const call$ = sluice.chat({ model: 'a', messages });
    expect(provider.seen).to.have.length(0);
    call$.subscribe();
    call$.subscribe();
    runtime.run();
    expect(provider.seen).to.have.length(2);
    expect(new Set(events.map(({ callId }) => callId)).size).to.equal(2);
  });

  it('tells of a call from first to last, ending with call.ended', () => {
    start({});
    ask({ tenant: 'acme', conversation: 'c-1' });
    runtime.run();
    expect(types()).to.include.members(['attempt.started', 'committed', 'attempt.ended']);
    expect(events.at(-1)).to.include({
      type: 'call.ended',
      outcome: 'success',
      attempts: 1,
      tenant: 'acme',
      conversation: 'c-1',
      model: 'a',
    });
  });

  it('puts lane, fallback, retry, breaker and attempt in the order of the documentation', () => {
    start(
      { models: { a: { fallback: ['b'], retry: { attempts: 2, baseMs: 50, jitter: 'none' } }, default: {} } },
      (model) => (model === 'a' ? BAD : {}),
    );
    const first = ask({ conversation: 'c' });
    const second = ask({ conversation: 'c' });
    runtime.run();
    expect(first.values).to.deep.equal(['b']);
    expect(second.values).to.deep.equal(['b']);
    // The second turn starts only when retries and fallbacks of the first have ended.
    expect(provider.models()).to.deep.equal(['a', 'a', 'b', 'a', 'a', 'b']);
    expect(types().filter((type) => type === 'retry.scheduled')).to.have.length(2);
    expect(types().filter((type) => type === 'fallback')).to.have.length(2);
  });

  it('admits each attempt anew, so that retries take quota', () => {
    const retry = { attempts: 3, baseMs: 1, jitter: 'none' } as const;
    start({ quota: { account: { requestsPerMinute: 60, burstRequests: 1 } }, models: { a: { retry } } }, (_, index) =>
      index < 2 ? BAD : {},
    );
    const call = ask();
    runtime.run();
    expect(call.values).to.deep.equal(['a']);
    const [first = 0, second = 0, third = 0] = provider.seen.map(({ atMs }) => atMs);
    expect(second - first).to.be.at.least(1000);
    expect(third - second).to.be.at.least(1000);
  });

  describe('per-call options', () => {
    it('fallback replaces that of the policy', () => {
      start(
        { models: { a: { fallback: ['b'], retry: { attempts: 1 } }, default: { retry: { attempts: 1 } } } },
        (model) => (model === 'c' ? {} : BAD),
      );
      const policys = ask();
      const own = ask({ fallback: ['c'] });
      const none = ask({ fallback: [] });
      runtime.run();
      expect(policys.error?.code).to.equal('server_error');
      expect(own.values).to.deep.equal(['c']);
      expect(none.error?.attempts).to.have.length(1);
    });

    it('attempts replaces that of the model', () => {
      start({ models: { a: { retry: { attempts: 3 } } } }, () => BAD);
      ask({ attempts: 1 });
      runtime.run();
      expect(provider.seen).to.have.length(1);
      ask();
      runtime.run();
      expect(provider.seen).to.have.length(4);
    });

    it('deadlineMs replaces that of the policy', () => {
      start({ deadlineMs: 5_000 }, () => ({ hangs: true }));
      const early = ask({ deadlineMs: 100 });
      const late = ask();
      runtime.advance(200);
      expect(early.error?.code).to.equal('timeout_deadline');
      expect(late.error).to.equal(undefined);
      runtime.advance(5_000);
      expect(late.error).to.not.equal(undefined);
    });

    it('signal ends the call with aborted, and everything of it', () => {
      start({}, () => ({ hangs: true }));
      const controller = new AbortController();
      const call = ask({ signal: controller.signal });
      controller.abort('enough');
      expect(call.error?.code).to.equal('aborted');
      expect(provider.seen[0]?.left).to.equal(true);
      expect(events.at(-1)).to.include({ type: 'call.ended', outcome: 'failure', code: 'aborted' });
    });

    it('priority must be one of the policy', () => {
      start({ priorities: { order: ['now', 'later'] } });
      const known = ask({ priority: 'later' });
      const unknown = ask({ priority: 'batch' });
      runtime.run();
      expect(known.done).to.equal(true);
      expect(unknown.error?.code).to.equal('invalid_request');
      expect(unknown.error?.message).to.contain('now, later');
    });

    it('midStream and restarts start the answer over', () => {
      start({ models: { a: { retry: { baseMs: 1, jitter: 'none' } } } }, (_, index) =>
        index === 0 ? { text: 'half', error: 'connection' } : {},
      );
      const call = recording(sluice.chat({ model: 'a', messages }, { midStream: 'restart', restarts: true }));
      runtime.run();
      expect(call.values.filter(isRestart)).to.have.length(1);
      expect(call.done).to.equal(true);
      start({}, () => ({ text: 'half', error: 'connection' }));
      const plain = ask();
      runtime.run();
      expect(plain.values).to.deep.equal(['half']);
      expect(plain.error?.code).to.equal('connection');
      expect(plain.error?.partial?.text).to.equal('half');
    });

    it('midStream continue reserves for what the model is asked to read again', () => {
      const reserved = (options: CallOptions): number[] => {
        const levels = [100_000];
        start(
          {
            quota: { account: { tokensPerMinute: 100_000 } },
            models: { a: { canContinue: true, retry: { baseMs: 1, jitter: 'none' } } },
          },
          (_, index) => {
            levels.push(sluice.snapshot().admission.models['a']?.deployments[0]?.layers[0]?.tokens?.level ?? NaN);
            return index === 0 ? { text: 'word '.repeat(200), error: 'connection' } : {};
          },
        );
        ask({ midStream: 'continue', ...options });
        runtime.run();
        return levels.slice(1).map((level, at) => (levels[at] ?? NaN) - level);
      };
      const [first = NaN, second = NaN] = reserved({});
      expect(second - first).to.be.within(150, 350);
      const [named = NaN, again = NaN] = reserved({ cost: 500 });
      expect(named).to.equal(500);
      expect(again).to.be.closeTo(500, 20);
    });

    it('cost named by the call is refused where it never fits', () => {
      start({ quota: { account: { tokensPerMinute: 1_000 } } });
      const guessed = ask({ cost: { tokens: 2_000, explicit: false } });
      const named = ask({ cost: 2_000 });
      runtime.run();
      expect(guessed.done).to.equal(true);
      expect(named.error?.code).to.equal('cost_too_large');
    });

    it('are checked when the call is made', () => {
      start({});
      for (const options of [
        { deadlineMs: 0 },
        { attempts: 0.5 },
        { tenant: '' },
        { midStream: 'never' },
        { fallback: 'b' },
        { signal: {} },
      ]) {
        expect(thrown(() => sluice.chat({ model: 'a', messages }, options as never)).code).to.equal('invalid_option');
      }
    });
  });

  it('adapts parameters to each model', () => {
    start(
      {
        models: {
          a: { fallback: ['b'], retry: { attempts: 1 } },
          b: {
            params: { omit: ['temperature'], rename: { max_tokens: 'max_completion_tokens' }, set: { top_p: 0.5 } },
          },
        },
      },
      (model) => (model === 'a' ? BAD : {}),
    );
    recording(sluice.chat({ model: 'a', messages, temperature: 0, max_tokens: 7 }));
    runtime.run();
    const [first, second] = provider.seen.map(({ attempt }) => attempt.request);
    expect(first).to.include({ temperature: 0, max_tokens: 7 });
    expect(second).to.include({ max_completion_tokens: 7, top_p: 0.5 });
    expect(second).to.not.have.any.keys('temperature', 'max_tokens');
  });

  it('asks a client for usage until it has refused once', () => {
    const refusal: Reply = { error: 'bad_request', message: '400: unknown field stream_options' };
    start({}, (_, __, { request }) => ('stream_options' in request ? refusal : {}));
    for (let call = 0; call < 3; call++) {
      const seen = ask();
      runtime.run();
      expect(seen.values).to.deep.equal(['a']);
    }
    const asked = provider.seen.map(({ attempt }) => 'stream_options' in attempt.request);
    expect(asked).to.deep.equal([true, false, false, false]);
  });

  it('sends the conversation under the header of the policy', () => {
    start({ conversations: { header: 'x-conversation' } });
    ask({ conversation: 'c-9' });
    ask();
    runtime.run();
    expect(provider.seen.map(({ attempt }) => attempt.headers)).to.deep.equal([{ 'x-conversation': 'c-9' }, {}]);
  });

  it('counts tokens by the estimate hook', () => {
    const asked: string[] = [];
    start({ quota: { account: { tokensPerMinute: 60_000, burstTokens: 1_000 } } }, undefined, {
      estimate: (_, model) => {
        asked.push(model);
        return 1_000;
      },
    });
    ask();
    ask();
    runtime.run();
    expect(asked).to.include('a');
    expect((provider.seen[1]?.atMs ?? 0) - (provider.seen[0]?.atMs ?? 0)).to.be.at.least(990);
  });

  it('renames a model for its deployment, and tells of it by the name that was asked for', () => {
    start({ models: { a: { deployments: [{ client: 'main', model: 'a-eu' }] } } });
    const call = ask();
    runtime.run();
    expect(call.done).to.equal(true);
    expect(provider.models()).to.deep.equal(['a-eu']);
    expect(new Set(events.map(({ model }) => model))).to.deep.equal(new Set(['a']));
  });

  it('asks a fallback at another vendor by the name of its client', () => {
    runtime = virtualRuntime();
    provider = fakeProvider(runtime, () => BAD);
    const other = fakeProvider(runtime);
    const policy = { models: { a: { fallback: ['b'], retry: { attempts: 1 } }, b: { client: 'other' } } };
    sluice = createSluice({ main: provider.source, other: other.source }, policy, { runtime });
    const call = ask();
    runtime.run();
    expect(call.values).to.deep.equal(['b']);
    expect(other.models()).to.deep.equal(['b']);
  });

  it('answers a failure by what degrade says', () => {
    start({ models: { default: { retry: { attempts: 1 } } } }, () => BAD, {
      degrade: (failure, { model }) =>
        model === 'a' ? `sorry: ${failure.code}` : model === 'b' ? of({ choices: [] }) : undefined,
    });
    const [canned, own, none] = [ask(), ask({}, 'b'), ask({}, 'c')];
    const whole = recording(sluice.complete({ model: 'a', messages }));
    const response = recording(sluice.respond({ model: 'a', input: 'Hello' }).pipe(text()));
    runtime.run();
    expect(canned.values).to.deep.equal(['sorry: server_error']);
    expect(own.done).to.equal(true);
    expect(none.error?.code).to.equal('server_error');
    expect(whole.values[0]?.choices[0]?.message.content).to.equal('sorry: server_error');
    expect(response.values.join('')).to.equal('sorry: server_error');
  });

  it('lets the observer hear, see calls start, and surround attempts', () => {
    const log: string[] = [];
    start({}, undefined, {
      telemetry: {
        onCall: ({ api, model, parameters, attributes }) => {
          log.push(`${api} ${model} ${JSON.stringify(parameters)} ${JSON.stringify(attributes)}`);
        },
        onEvent: ({ type }) => log.push(type),
      },
    });
    recording(sluice.chat({ model: 'a', messages, temperature: 1 }, { attributes: { feature: 'search' } }));
    runtime.run();
    expect(log[0]).to.equal('chat a {"temperature":1} {"feature":"search"}');
    expect(log.at(-1)).to.equal('call.ended');
  });

  it('survives observers that throw', () => {
    const fail = (): never => {
      throw new Error('observer');
    };
    start({}, undefined, { telemetry: { onCall: fail, onEvent: fail } });
    const call = ask();
    runtime.run();
    expect(call.done).to.equal(true);
  });

  it('shows what runs, by tenant', () => {
    start({});
    const call = ask({ tenant: 'acme' });
    ask();
    expect(sluice.snapshot()).to.deep.include({ calls: 2, callsByTenant: { acme: 1 } });
    call.subscription.unsubscribe();
    expect(sluice.snapshot().callsByTenant).to.deep.equal({});
    expect(events.at(-1)).to.include({ type: 'call.ended', outcome: 'dropped' });
  });

  it('leaves nothing of 1,000 calls on one signal', () => {
    start({});
    const { signal } = new AbortController();
    let listeners = 0;
    const { addEventListener, removeEventListener } = signal;
    signal.addEventListener = (...of: Parameters<typeof addEventListener>) => {
      listeners++;
      addEventListener.apply(signal, of);
    };
    signal.removeEventListener = (...of: Parameters<typeof removeEventListener>) => {
      listeners--;
      removeEventListener.apply(signal, of);
    };
    const calls = Array.from({ length: 1_000 }, () => ask({ signal }));
    expect(listeners).to.equal(1_000);
    runtime.run();
    expect(calls.every(({ done }) => done)).to.equal(true);
    expect(listeners).to.equal(0);
  });

  describe('close', () => {
    it('refuses new calls, drains those that run or wait, and then resolves', async () => {
      start({});
      const calls = [ask({ conversation: 'c' }), ask({ conversation: 'c' })];
      let closed = false;
      const closing = sluice.close().then(() => (closed = true));
      const late = ask();
      expect(late.error?.code).to.equal('closed');
      await runtime.advanceAsync(15);
      expect(closed).to.equal(false);
      await runtime.advanceAsync(100);
      await closing;
      expect(calls.map(({ values }) => values)).to.deep.equal([['a'], ['a']]);
    });

    it('ends with closed what is left after drainMs', async () => {
      start({}, () => ({ hangs: true }));
      const call = ask();
      const waiting = [ask({ conversation: 'c' }), ask({ conversation: 'c' })];
      const closing = sluice.close({ drainMs: 50 });
      runtime.advance(49);
      expect(call.error).to.equal(undefined);
      runtime.advance(1);
      await closing;
      for (const { error } of [call, ...waiting]) expect(error?.code).to.equal('closed');
      expect(provider.open).to.equal(0);
    });
  });

  describe('reload', () => {
    it('keeps waiters and conversations, and applies to what comes after', () => {
      start({ conversations: { maxWaiting: 5 }, models: { a: { fallback: [] } } }, (_, index) =>
        index < 2 ? {} : BAD,
      );
      const turns = [ask({ conversation: 'c' }), ask({ conversation: 'c' })];
      sluice.reload({ models: { a: { fallback: ['b'] }, default: { retry: { attempts: 1 } } } });
      runtime.advance(100);
      expect(turns.every(({ done }) => done)).to.equal(true);
      ask();
      runtime.run();
      expect(provider.models().slice(0, 2)).to.deep.equal(['a', 'a']);
      expect(provider.models().at(-1)).to.equal('b');
    });

    it('leaves the policy as it is where the new one is wrong', () => {
      start({ models: { a: { retry: { attempts: 1 } } } }, () => BAD);
      expect(thrown(() => sluice.reload({ deadlineMs: -1 })).code).to.equal('invalid_policy');
      ask();
      runtime.run();
      expect(provider.seen).to.have.length(1);
    });
  });

  it('refuses wrong clients, policies and options when it is made', () => {
    start({});
    for (const clients of [undefined, null, {}, { main: {} }, 3] as never[]) {
      expect(thrown(() => createSluice(clients, {})).code).to.equal('invalid_option');
    }
    expect(thrown(() => createSluice(provider.source, { deadlinems: 1 } as never)).code).to.equal('invalid_policy');
    expect(thrown(() => createSluice(provider.source, {}, { classify: 1 } as never)).code).to.equal('invalid_option');
    expect(thrown(() => createSluice(provider.source, { models: { a: { client: 'x' } } })).code).to.equal(
      'invalid_policy',
    );
  });
});

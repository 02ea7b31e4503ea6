import { expect } from 'chai';
import { defer, EMPTY, NEVER, Observable, of, take, throwError } from 'rxjs';
import { CallScope } from '../../lib/core/CallScope.ts';
import { currentScope } from '../../lib/core/currentScope.ts';
import type { ErrorCode } from '../../lib/core/errors.ts';
import type { SluiceEvent } from '../../lib/core/events.ts';
import type { FallbackMap } from '../../lib/operators/FallbackChain.ts';
import { fallbackModel } from '../../lib/operators/fallbackModel.ts';
import type { FallbackModelOptions } from '../../lib/operators/FallbackModelOptions.ts';
import { retryWithJitter } from '../../lib/operators/retryWithJitter.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { marbles } from '../helpers/marbles.ts';
import { failed, recording, scripted, speaking, thrown } from '../helpers/scripted.ts';
import type { Step } from '../helpers/scripted.ts';

const ok: Step = { values: ['ok'] };

describe('fallbackModel', () => {
  let runtime: VirtualRuntime;

  beforeEach(() => {
    runtime = virtualRuntime();
  });

  /** A primary called m1, and what each model answers; models not named answer `ok`. */
  function run(
    models: readonly string[] | FallbackMap,
    answers: Record<string, Step>,
    options: FallbackModelOptions<string> & { restarts?: false } = {},
    scope = CallScope.start(runtime, { model: 'm1' }),
  ) {
    const asked: string[] = [];
    const scopes: (CallScope | undefined)[] = [];
    const ask = (model: string): Observable<string> =>
      defer(() => {
        asked.push(model);
        scopes.push(currentScope());
        return scripted(runtime, answers[model] ?? ok).source;
      });
    const seen = recording(ask('m1').pipe(fallbackModel(models, ask, { runtime, ...options })), scope);
    return { asked, scopes, seen };
  }

  it(
    'asks the next model when one fails, after it was torn down',
    marbles((m) => {
      const first = m.cold('  --#', undefined, failed('overloaded'));
      const second = m.cold('   -#', undefined, failed('connection'));
      const third = m.cold('     -x-y-|');
      const expected = '      ----x-y-|';
      const ask = (model: string) => (model === 'b' ? second : third);

      m.expectObservable(first.pipe(fallbackModel(['b', 'c'], ask, { runtime: m.runtime }))).toBe(expected);
      m.expectSubscriptions(first.subscriptions).toBe(' ^-!');
      m.expectSubscriptions(second.subscriptions).toBe('--^!');
      m.expectSubscriptions(third.subscriptions).toBe(' ---^----!');
    }),
  );

  it('asks nobody where the source answers, is empty or silent', () => {
    const ask = (): never => {
      throw new Error('asked');
    };
    expect(recording(of('a').pipe(fallbackModel(['b'], ask))).values).to.deep.equal(['a']);
    expect(recording(EMPTY.pipe(fallbackModel(['b'], ask))).done).to.be.true;
    const silent = recording(NEVER.pipe(fallbackModel(['b'], ask)));
    expect(silent).to.deep.include({ values: [], done: false, error: undefined });
  });

  it('stops a synchronous source as soon as the one downstream has had enough', () => {
    let made = 0;
    const endless = new Observable<string>((subscriber) => {
      while (!subscriber.closed && made < 1000) subscriber.next(String(made++));
    });
    const failing = throwError(() => failed('overloaded'));
    expect(
      recording(
        failing.pipe(
          fallbackModel(['b'], () => endless),
          take(3),
        ),
      ).values,
    ).to.deep.equal(['0', '1', '2']);
    expect(made).to.equal(3);
  });

  it('ends the model that is being asked on unsubscribe, in the same tick', () => {
    const script = scripted(runtime, { hangs: true });
    const seen = recording(throwError(() => failed('overloaded')).pipe(fallbackModel(['b'], () => script.source)));
    expect(script.active).to.equal(1);
    seen.subscription.unsubscribe();
    expect(script.active).to.equal(0);
  });

  it('starts afresh for each subscription of one assembled observable', () => {
    const asked: string[] = [];
    const assembled = throwError(() => failed('overloaded')).pipe(
      fallbackModel(['b'], (model) => {
        asked.push(model);
        return of(model);
      }),
    );
    expect(recording(assembled).values).to.deep.equal(['b']);
    expect(recording(assembled).values).to.deep.equal(['b']);
    expect(asked).to.deep.equal(['b', 'b']);
  });

  it('keeps two calls apart that run in one', () => {
    const scope = CallScope.start(runtime);
    for (let n = 0; n < 2; n++) {
      const { seen } = run(['m2'], { m1: { error: failed('overloaded') } }, {}, scope);
      expect(seen.values).to.deep.equal(['ok']);
    }
  });

  it('subscribes in a frame with the model and the number of the attempt', () => {
    const { scopes } = run(['m2', 'm3'], { m1: { error: failed('overloaded') }, m2: { error: failed('connection') } });
    expect(scopes.map((scope) => [scope?.model, scope?.attempt])).to.deep.equal([
      ['m1', 1],
      ['m2', 2],
      ['m3', 3],
    ]);
    expect(new Set(scopes.map((scope) => scope?.callId)).size).to.equal(1);
  });

  describe('what leads to another model', () => {
    const leads: ErrorCode[] = [
      'rate_limited',
      'quota_exhausted',
      'request_too_large',
      'context_too_long',
      'overloaded',
      'server_error',
      'auth',
      'not_found',
      'conflict',
      'connection',
      'stream_truncated',
      'stream_idle',
      'timeout',
      'upstream_body_invalid',
      'timeout_deadline',
      'circuit_open',
      'queue_full',
      'queue_timeout',
      'cost_too_large',
      'retry_budget_exhausted',
      'limiter_unavailable',
    ];
    for (const code of leads) {
      it(`is ${code}`, () => {
        expect(run(['m2'], { m1: { error: failed(code) } }).asked).to.deep.equal(['m1', 'm2']);
      });
    }

    const stays: ErrorCode[] = ['bad_request', 'content_filtered', 'invalid_request', 'invalid_option', 'spend_capped'];
    for (const code of stays) {
      it(`is not ${code}, unless it is named`, () => {
        const answers = { m1: { error: failed(code) } };
        const { asked, seen } = run(['m2'], answers);
        expect(asked).to.deep.equal(['m1']);
        expect(seen.error?.code).to.equal(code);
        expect(run({ [code]: ['m2'] }, answers).asked).to.deep.equal(['m1', 'm2']);
        expect(run(['m2'], answers, { onlyOn: [code] }).asked).to.deep.equal(['m1', 'm2']);
      });
    }

    for (const code of ['aborted', 'superseded', 'closed', 'lane_lost'] as const) {
      it(`is never ${code}`, () => {
        const { asked, seen } = run(['m2'], { m1: { error: failed(code) } }, { onlyOn: [code] });
        expect(asked).to.deep.equal(['m1']);
        expect(seen.error?.code).to.equal(code);
        expect(thrown(() => run({ [code]: ['m2'] }, {}))).to.include({ code: 'invalid_option' });
      });
    }

    it('is what others threw, by its class', () => {
      const unauthorized = Object.assign(new Error('no'), { name: 'AuthenticationError', status: 401 });
      expect(run(['m2'], { m1: { error: unauthorized } }).asked).to.deep.equal(['m1', 'm2']);
      expect(run(['m2'], { m1: { error: new TypeError('a mistake') } }).asked).to.deep.equal(['m1']);
    });

    it('is bounded by onlyOn and except', () => {
      const answers = { m1: { error: failed('overloaded') } };
      expect(run(['m2'], answers, { onlyOn: ['auth'] }).asked).to.deep.equal(['m1']);
      expect(run(['m2'], answers, { onlyOn: ['overloaded'] }).asked).to.deep.equal(['m1', 'm2']);
      expect(run(['m2'], answers, { except: ['overloaded'] }).asked).to.deep.equal(['m1']);
    });

    it('is nothing once the deadline has passed', () => {
      const scope = CallScope.start(runtime, { model: 'm1', deadlineAtMs: 50 });
      const { asked, seen } = run(['m2'], { m1: { afterMs: 50, error: failed('timeout') } }, {}, scope);
      runtime.run();
      expect(asked).to.deep.equal(['m1']);
      expect(seen.error?.code).to.equal('timeout');
    });

    it('is nothing once the call has had maxAttempts', () => {
      const { asked } = run(
        ['m2', 'm3'],
        { m1: { error: failed('overloaded') }, m2: { error: failed('overloaded') } },
        { maxAttempts: 2 },
      );
      expect(asked).to.deep.equal(['m1', 'm2']);
    });

    it('is nothing after the first value', () => {
      const { asked, seen } = run(['m2'], { m1: { values: ['a'], error: failed('overloaded') } });
      expect(asked).to.deep.equal(['m1']);
      expect(seen.values).to.deep.equal(['a']);
    });
  });

  describe('a map from the code to models', () => {
    it('asks by cause', () => {
      const map = { context_too_long: ['long'], quota_exhausted: ['other'], default: ['any'] };
      expect(run(map, { m1: { error: failed('context_too_long') } }).asked).to.deep.equal(['m1', 'long']);
      expect(run(map, { m1: { error: failed('quota_exhausted') } }).asked).to.deep.equal(['m1', 'other']);
      expect(run(map, { m1: { error: failed('overloaded') } }).asked).to.deep.equal(['m1', 'any']);
    });

    it('asks nobody for a code that leads to an empty list, or to none', () => {
      expect(run({ overloaded: [], default: ['any'] }, { m1: { error: failed('overloaded') } }).asked).to.have.length(
        1,
      );
      expect(run({ auth: ['m2'] }, { m1: { error: failed('overloaded') } }).asked).to.have.length(1);
    });

    it('follows each failure in turn, and then what an earlier one left', () => {
      const map = { overloaded: ['b', 'c'], context_too_long: ['long'], default: ['last'] };
      const { asked, seen } = run(map, {
        m1: { error: failed('overloaded') },
        b: { error: failed('context_too_long') },
        long: { error: failed('connection') },
        c: { error: failed('connection') },
      });
      expect(asked).to.deep.equal(['m1', 'b', 'long', 'c', 'last']);
      expect(seen.values).to.deep.equal(['ok']);
    });
  });

  describe('cycles', () => {
    const down = { error: failed('overloaded') };

    it('asks no model twice, not even the one that was asked first', () => {
      expect(run(['m1', 'm2'], { m1: down, m2: down }).asked).to.deep.equal(['m1', 'm2']);
      expect(run({ overloaded: ['m2'], default: ['m2', 'm1'] }, { m1: down, m2: down }).asked).to.deep.equal([
        'm1',
        'm2',
      ]);
    });

    it('knows the first model by its failure where the frame does not name it', () => {
      const error = failed('overloaded', { model: 'm1' });
      const { asked } = run(['m1', 'm2'], { m1: { error } }, {}, CallScope.start(runtime));
      expect(asked).to.deep.equal(['m1', 'm2']);
    });

    it('knows the first model by the frame where its failure names another', () => {
      const error = failed('overloaded', { model: 'm1-deployment' });
      expect(run(['m1', 'm2'], { m1: { error } }).asked).to.deep.equal(['m1', 'm2']);
    });

    it('asks no model twice where chains are nested', () => {
      const asked: string[] = [];
      const plain = (model: string): Observable<string> =>
        defer(() => {
          asked.push(model);
          return throwError(() => failed('overloaded', { model }));
        });
      const next: Record<string, string[]> = { a: ['b', 'c'], b: ['a', 'c'], c: ['a', 'b', 'd'], d: [] };
      const ask = (model: string): Observable<string> => plain(model).pipe(fallbackModel(next[model] ?? [], ask));
      const { error } = recording(ask('a'));

      expect(asked).to.deep.equal(['a', 'b', 'c', 'd']);
      expect(error?.model).to.equal('a');
      expect(error?.attempts.map(({ model }) => model)).to.deep.equal(['a', 'b', 'c', 'd']);
    });

    it('goes round again where a retry further down starts the chain over', () => {
      const { source } = scripted(runtime, { error: failed('overloaded', { model: 'm1' }) });
      const asked: string[] = [];
      const chain = source.pipe(
        fallbackModel<string>(['m2'], (model) => {
          asked.push(model);
          return throwError(() => failed('overloaded'));
        }),
        retryWithJitter({ attempts: 3, runtime }),
      );
      recording(chain, CallScope.start(runtime, { model: 'm1' }));
      runtime.run();
      expect(asked).to.deep.equal(['m2', 'm2', 'm2']);
    });
  });

  describe('the error at the end', () => {
    it('is the first failure, and names what each model answered', () => {
      const { seen } = run(['m2', 'm3'], {
        m1: { error: failed('server_error', { status: 503 }) },
        m2: { error: failed('bad_request', { status: 400 }) },
        m3: { error: failed('circuit_open') },
      });
      expect(seen.error).to.include({ code: 'server_error', status: 503, model: 'm1' });
      expect(seen.error?.attempts.map(({ model, code, status }) => [model, code, status])).to.deep.equal([
        ['m1', 'server_error', 503],
        ['m2', 'bad_request', 400],
        ['m3', 'circuit_open', undefined],
      ]);
    });

    it('names every retry of every model', () => {
      const retrying = (model: string, times: number): Observable<string> =>
        speaking(
          runtime,
          model,
          throwError(() => failed('overloaded')),
        ).pipe(retryWithJitter({ attempts: times, runtime, model }));
      const { error } = (() => {
        const seen = recording(retrying('m1', 3).pipe(fallbackModel(['m2'], (model) => retrying(model, 2))));
        runtime.run();
        return seen;
      })();
      expect(error?.attempts.map(({ attempt, model }) => [attempt, model])).to.deep.equal([
        [1, 'm1'],
        [2, 'm1'],
        [3, 'm1'],
        [4, 'm2'],
        [5, 'm2'],
      ]);
    });

    it('tells when the first of the models can be asked again', () => {
      const { seen } = run(['m2', 'm3'], {
        m1: { error: failed('rate_limited', { retryAfterMs: 9000 }) },
        m2: { afterMs: 1000, error: failed('circuit_open', { retryAfterMs: 4000 }) },
        m3: { afterMs: 500, error: failed('connection') },
      });
      runtime.run();
      expect(seen.error).to.include({ code: 'rate_limited', retryAfterMs: 3500 });
    });

    it('is the end of the call where that came in between', () => {
      const { seen } = run(['m2', 'm3'], { m1: { error: failed('overloaded') }, m2: { error: failed('superseded') } });
      expect(seen.error?.code).to.equal('superseded');
    });

    it('is what ask throws, but for an error of ours', () => {
      const mistake = new Error('mistake');
      const failing = throwError(() => failed('overloaded', { model: 'm1' }));
      const throwing = (error: Error) =>
        recording(
          failing.pipe(
            fallbackModel<string>(['m2'], () => {
              throw error;
            }),
          ),
        );
      expect(throwing(mistake).error).to.equal(mistake);
      const { error } = throwing(failed('invalid_request'));
      expect(error?.code).to.equal('overloaded');
      expect(error?.attempts.map(({ model, code }) => [model, code])).to.deep.equal([
        ['m1', 'overloaded'],
        ['m2', 'invalid_request'],
      ]);
    });
  });

  it('passes over a model that the prompt does not fit, and says so', () => {
    const events: SluiceEvent[] = [];
    const { asked } = run(
      ['m2', 'm3', 'm4'],
      { m1: { error: failed('rate_limited', { retryAfterMs: 900_000 }) } },
      {
        promptTokens: 125_516,
        maxPromptTokens: { m2: 64_000, m3: 200_000 },
        onEvent: (event) => events.push(event),
      },
    );
    expect(asked).to.deep.equal(['m1', 'm3']);
    expect(events.map(({ type, model }) => [type, model])).to.deep.equal([
      ['refused', 'm2'],
      ['fallback', 'm1'],
    ]);
    expect(events[0]).to.include({ code: 'context_too_long' });
    expect(events[1]).to.include({ from: 'm1', to: 'm3', code: 'rate_limited' });
  });

  it('does not try a silent provider again while it has another model', () => {
    const answers = (model: string): Observable<string> =>
      defer(() => {
        asked.push(model);
        return throwError(() => failed('timeout', { while: 'headers', model }));
      });
    const asked: string[] = [];
    const ask = (model: string) => answers(model).pipe(retryWithJitter<string>({ attempts: 2, model, runtime }));
    recording(ask('m1').pipe(fallbackModel(['m2'], ask, { runtime })));
    runtime.run();
    expect(asked).to.deep.equal(['m1', 'm2', 'm2']);
  });

  const anyModel = (model: string): Observable<string> => of(model);

  it('does not try a silent provider again while an outer chain has another model', () => {
    const asked: string[] = [];
    const ask = (model: string): Observable<string> =>
      defer(() => {
        asked.push(model);
        return throwError(() => failed('timeout', { while: 'first_content', model }));
      }).pipe(retryWithJitter<string>({ attempts: 2, model, runtime }));
    const inner = (model: string) => ask(model).pipe(fallbackModel([], ask, { runtime }));
    recording(inner('m1').pipe(fallbackModel(['m2'], inner, { runtime })));
    runtime.run();
    expect(asked).to.deep.equal(['m1', 'm2', 'm2']);
  });

  for (const [name, work, message] of [
    [
      'a model named twice',
      () => fallbackModel(['a', 'b', 'a'], anyModel),
      'models must be without repeats in a list, got an array of 3',
    ],
    [
      'a model without a name',
      () => fallbackModel([''], anyModel),
      'models must be a string that is not empty, got an empty string',
    ],
    [
      'a map to something else than lists',
      () => fallbackModel({ overloaded: 'b' as unknown as string[] }, anyModel),
      'models.overloaded must be a list of models, got a string of 1 characters',
    ],
    [
      'attempts that are no number',
      () => fallbackModel([], anyModel, { maxAttempts: NaN }),
      'maxAttempts must be a whole number of at least 1, got NaN',
    ],
    [
      'a prompt of less than nothing',
      () => fallbackModel([], anyModel, { promptTokens: -1 }),
      'promptTokens must be finite and 0 or more, got -1',
    ],
    [
      'a longest prompt of nothing',
      () => fallbackModel([], anyModel, { maxPromptTokens: { a: 0 } }),
      'maxPromptTokens.a must be finite and above 0, got 0',
    ],
    [
      'another mode',
      () => fallbackModel([], anyModel, { midStream: 'x' as 'fail' }),
      'midStream must be one of fail, restart, continue, got a string of 1 characters',
    ],
    [
      'models that go on without a way to ask them',
      () => fallbackModel([], anyModel, { midStream: 'continue', canContinue: ['a'] }),
      'continueWith must be given where canContinue names a model, got undefined',
    ],
  ] as const) {
    it(`refuses ${name}`, () => {
      expect(thrown(work)).to.include({ code: 'invalid_option', message });
    });
  }
});

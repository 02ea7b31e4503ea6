import { expect } from 'chai';
import { of, take } from 'rxjs';
import type { Observable } from 'rxjs';
import type { Answer } from '../../lib/core/answer.ts';
import { CallScope } from '../../lib/core/CallScope.ts';
import type { SluiceEvent } from '../../lib/core/events.ts';
import { isRestart } from '../../lib/core/restart.ts';
import type { Restart } from '../../lib/core/restart.ts';
import { createRetryBudget } from '../../lib/operators/createRetryBudget.ts';
import { fallbackModel } from '../../lib/operators/fallbackModel.ts';
import type { FallbackModelOptions } from '../../lib/operators/FallbackModelOptions.ts';
import { retryWithJitter } from '../../lib/operators/retryWithJitter.ts';
import type { RetryWithJitterOptions } from '../../lib/operators/RetryWithJitterOptions.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { failed, partial, recording, scripted } from '../helpers/scripted.ts';
import type { Step } from '../helpers/scripted.ts';

/** A stream that broke after `text`. */
const broken = (text: string, more: Partial<Answer> = {}): Step => ({
  values: text === '' ? [] : [text],
  error: failed('connection', { model: 'm1', partial: partial(text, more) }),
});
const overloaded: Step = { error: failed('overloaded') };
const refused: Step = { error: failed('bad_request', { status: 400 }) };

/** Values as text, markers as `<code>` with the model that answers. */
function shown(values: readonly (string | Restart)[]): string {
  return values.map((value) => (isRestart(value) ? `<${value.code} ${value.model ?? '?'}>` : value)).join('');
}

describe('midStream', () => {
  let runtime: VirtualRuntime;

  beforeEach(() => {
    runtime = virtualRuntime();
  });

  describe('restart in retryWithJitter', () => {
    function run(options: RetryWithJitterOptions<string>, ...steps: Step[]) {
      const script = scripted(runtime, ...steps);
      const operator = retryWithJitter<string>({
        baseMs: 100,
        jitter: 'none',
        midStream: 'restart',
        runtime,
        ...options,
        restarts: true,
      });
      const seen = recording(script.source.pipe(operator));
      runtime.run();
      return { script, seen };
    }

    it('puts a marker before the new answer', () => {
      const { seen } = run({}, broken('On'), { values: ['Once'] });
      expect(shown(seen.values)).to.equal('On<connection m1>Once');
      expect(seen.done).to.be.true;
    });

    it('puts no marker where nothing had come', () => {
      expect(shown(run({}, overloaded, { values: ['Once'] }).seen.values)).to.equal('Once');
    });

    it('leaves the consumer what it has until the new answer comes, and names what broke it off', () => {
      const { script, seen } = run({ model: 'm2' }, broken('On'), overloaded, { values: ['Once'] });
      expect(shown(seen.values)).to.equal('On<connection m2>Once');
      expect(script.startsMs).to.deep.equal([0, 100, 300]);
    });

    it('puts the marker before the end of a new answer without values', () => {
      expect(shown(run({}, broken('On'), {}).seen.values)).to.equal('On<connection m1>');
    });

    it('counts attempts on, whatever they emit', () => {
      const { script, seen } = run({ attempts: 3 }, broken('a'));
      expect(shown(seen.values)).to.equal('a<connection m1>a<connection m1>a');
      expect(script.startsMs).to.have.length(3);
      expect(seen.error?.attempts).to.have.length(3);
    });

    it('passes on the last failure with what the consumer holds', () => {
      const { seen } = run({ attempts: 2 }, broken('On'), overloaded);
      expect(shown(seen.values)).to.equal('On');
      expect(seen.error?.code).to.equal('overloaded');
      expect(seen.error?.partial?.text).to.equal('On');
      expect(seen.error?.attempts.map(({ code }) => code)).to.deep.equal(['connection', 'overloaded']);
    });

    it('does not start over after a failure that a retry cannot mend', () => {
      const { script } = run({}, { values: ['a'], error: failed('content_filtered') });
      expect(script.startsMs).to.have.length(1);
    });

    it('draws on the budget, and says so with what the consumer holds', () => {
      const { seen } = run({ budget: createRetryBudget({ ratio: 0, minPerSecond: 0 }, runtime) }, broken('On'));
      expect(seen.error?.code).to.equal('retry_budget_exhausted');
      expect(seen.error?.partial?.text).to.equal('On');
    });

    it('tells of the restart when the marker goes out', () => {
      const events: SluiceEvent[] = [];
      run({ onEvent: (event) => events.push(event) }, broken('On'), { afterMs: 50, values: ['Once'] });
      expect(events.map(({ type, atMs, attempt }) => [type, atMs, attempt])).to.deep.equal([
        ['retry.scheduled', 0, 1],
        ['restart', 150, 2],
      ]);
    });

    it('sends nothing behind a marker that was the last thing wanted', () => {
      const script = scripted(runtime, broken('On'), { values: ['Once', 'more'], hangs: true });
      const operator = retryWithJitter<string>({ midStream: 'restart', restarts: true, runtime });
      const seen = recording(script.source.pipe(operator, take(2)));
      runtime.run();
      expect(shown(seen.values)).to.equal('On<connection m1>');
      expect(script.active).to.equal(0);
    });
  });

  describe('continue in retryWithJitter', () => {
    function run(options: RetryWithJitterOptions<string>, first: Step, ...further: Step[]) {
      const asked: string[] = [];
      const script = scripted(runtime, first, ...further);
      const continueWith = (held: Answer): Observable<string> => {
        asked.push(held.text);
        return script.source;
      };
      const settings = { baseMs: 100, jitter: 'none', midStream: 'continue', canContinue: true, runtime } as const;
      const { restarts = true, ...others } = options;
      const all = { ...settings, continueWith, ...others };
      const seen = restarts
        ? recording(script.source.pipe(retryWithJitter<string>({ ...all, restarts: true })))
        : recording<string | Restart>(script.source.pipe(retryWithJitter<string>({ ...all, restarts: false })));
      runtime.run();
      return { asked, script, seen };
    }

    it('goes on behind what has come, without a marker', () => {
      const { asked, seen } = run({}, broken('Once'), { values: [' upon'] });
      expect(asked).to.deep.equal(['Once']);
      expect(shown(seen.values)).to.equal('Once upon');
      expect(seen.done).to.be.true;
    });

    it('goes on again behind all that has come', () => {
      const { asked, seen } = run({}, broken('Once'), broken(' upon'), overloaded, { values: [' a time'] });
      expect(asked).to.deep.equal(['Once', 'Once upon', 'Once upon']);
      expect(shown(seen.values)).to.equal('Once upon a time');
    });

    it('carries all that has come in the error', () => {
      const { seen } = run({ attempts: 2 }, broken('Once'), broken(' upon'));
      expect(seen.error?.code).to.equal('connection');
      expect(seen.error?.partial?.text).to.equal('Once upon');
      expect(seen.error?.partial?.choices[0]?.text).to.equal('Once upon');
    });

    it('starts over at once where the provider refuses the prefix, and names the first failure', () => {
      const { asked, script, seen } = run({}, broken('Once'), refused, { values: ['Once more'] });
      expect(asked).to.deep.equal(['Once']);
      expect(shown(seen.values)).to.equal('Once<connection m1>Once more');
      expect(script.startsMs).to.deep.equal([0, 100, 100]);
    });

    it('does not try a prefix again that was refused', () => {
      const { asked, seen } = run({}, broken('a'), refused, broken('b'), { values: ['c'] });
      expect(asked).to.have.length(1);
      expect(shown(seen.values)).to.equal('a<connection m1>b<connection m1>c');
    });

    it('reports the first failure, never the refusal, where it may not start over', () => {
      for (const options of [{ attempts: 2 }, { restarts: false }]) {
        const { seen } = run(options, broken('Once'), refused);
        expect(seen.error?.code).to.equal('connection');
        expect(seen.error?.partial?.text).to.equal('Once');
        expect(seen.error?.attempts.map(({ code }) => code)).to.deep.equal(['connection', 'bad_request']);
      }
    });

    it('starts over at once after a refusal, whatever that says of waiting', () => {
      const hinted = { error: failed('bad_request', { status: 400, retryAfterMs: 70_000 }) };
      const { script, seen } = run({}, broken('Once'), hinted, { values: ['New'] });
      expect(shown(seen.values)).to.equal('Once<connection m1>New');
      expect(script.startsMs[2]).to.equal(100);
    });

    it('starts over where it is not known how far the answer got', () => {
      const lost = { values: [' upon'], error: failed('connection') };
      const { asked, seen } = run({}, broken('Once'), lost, { values: ['New'] });
      expect(asked).to.deep.equal(['Once']);
      expect(shown(seen.values)).to.equal('Once upon<connection ?>New');
    });

    const call = { index: 0, id: 'c1', type: 'function', name: 'f', arguments: '{"a"' };
    for (const [name, more] of [
      ['with an open tool call', { toolCalls: [call] }],
      ['with a refusal', { refusal: 'I cannot' }],
      ['that was finished', { finishReason: 'stop' }],
      ['of several choices', { choices: [partial('a').choices[0]!, partial('b').choices[0]!] }],
    ] as const) {
      it(`starts an answer over ${name}`, () => {
        const { asked, seen } = run({}, broken('Once', more), { values: ['New'] });
        expect(asked).to.deep.equal([]);
        expect(shown(seen.values)).to.equal('Once<connection m1>New');
      });
    }

    it('starts an answer over that has no text yet, or whose text is not known', () => {
      for (const first of [broken('', { reasoning: 'hm' }), { error: failed('connection', { model: 'm1' }) }]) {
        const { asked, seen } = run({}, { ...first, values: ['x'] }, { values: ['New'] });
        expect(asked).to.deep.equal([]);
        expect(shown(seen.values)).to.equal('x<connection m1>New');
      }
    });

    it('does not go on for a model that was not said to accept a prefix', () => {
      const { asked, seen } = run({ canContinue: false }, broken('Once'), { values: ['New'] });
      expect(asked).to.deep.equal([]);
      expect(shown(seen.values)).to.equal('Once<connection m1>New');
    });

    it('passes on what continueWith throws', () => {
      const mistake = new Error('mistake');
      const continueWith = (): never => {
        throw mistake;
      };
      expect(run({ continueWith }, broken('Once')).seen.error).to.equal(mistake);
    });
  });

  describe('in fallbackModel', () => {
    function run(options: FallbackModelOptions<string>, first: Step, models: Record<string, Step[]>) {
      const asked: string[] = [];
      const scripts = new Map(Object.entries(models).map(([model, steps]) => [model, scripted(runtime, ...steps)]));
      const ask = (model: string): Observable<string> => {
        asked.push(model);
        return scripts.get(model)!.source;
      };
      const continueWith = (held: Answer, model: string): Observable<string> => {
        asked.push(`${model} after "${held.text}"`);
        return scripts.get(model)!.source;
      };
      const { restarts = true, ...others } = options;
      const all = { continueWith, runtime, ...others };
      const list = Object.keys(models);
      const { source } = scripted(runtime, first);
      const scope = CallScope.start(runtime, { model: 'm1' });
      const seen = restarts
        ? recording(source.pipe(fallbackModel(list, ask, { ...all, restarts: true })), scope)
        : recording<string | Restart>(source.pipe(fallbackModel(list, ask, { ...all, restarts: false })), scope);
      runtime.run();
      return { asked, seen };
    }

    it('fails with what came by default', () => {
      const { asked, seen } = run({}, broken('Once upon'), { m2: [{ values: ['Once upon a time'] }] });
      expect(asked).to.deep.equal([]);
      expect(shown(seen.values)).to.equal('Once upon');
      expect(seen.error?.code).to.equal('connection');
      expect(seen.error?.partial?.text).to.equal('Once upon');
    });

    it('looks for no other model where it fails anyway', () => {
      const events: SluiceEvent[] = [];
      const tooSmall = {
        promptTokens: 9,
        maxPromptTokens: { m2: 1 },
        onEvent: (event: SluiceEvent) => events.push(event),
      };
      expect(run(tooSmall, broken('On'), { m2: [] }).seen.error?.code).to.equal('connection');
      expect(events).to.deep.equal([]);
    });

    it('starts over with the next model behind a marker', () => {
      const { seen } = run({ midStream: 'restart' }, broken('On'), { m2: [overloaded], m3: [{ values: ['Once'] }] });
      expect(shown(seen.values)).to.equal('On<connection m3>Once');
    });

    it('fails where the consumer did not say that it handles markers', () => {
      const { asked, seen } = run({ midStream: 'restart', restarts: false }, broken('On'), { m2: [{ values: ['x'] }] });
      expect(asked).to.deep.equal([]);
      expect(seen.error?.code).to.equal('connection');
    });

    it('reports what broke the answer off where no model can mend it', () => {
      const { seen } = run({ midStream: 'restart' }, broken('On'), { m2: [overloaded] });
      expect(seen.error?.code).to.equal('connection');
      expect(seen.error?.partial?.text).to.equal('On');
      expect(seen.error?.attempts.map(({ model, code }) => [model, code])).to.deep.equal([
        ['m1', 'connection'],
        ['m2', 'overloaded'],
      ]);
    });

    it('lets a model go on that accepts a prefix', () => {
      const { asked, seen } = run({ midStream: 'continue', canContinue: ['m2'] }, broken('Once'), {
        m2: [{ values: [' upon'] }],
      });
      expect(asked).to.deep.equal(['m2 after "Once"']);
      expect(shown(seen.values)).to.equal('Once upon');
    });

    it('starts over with a model that does not', () => {
      const { asked, seen } = run({ midStream: 'continue', canContinue: ['m9'] }, broken('Once'), {
        m2: [{ values: ['New'] }],
      });
      expect(asked).to.deep.equal(['m2']);
      expect(shown(seen.values)).to.equal('Once<connection m2>New');
    });

    it('starts over on the very model that refused the prefix, and names the first failure', () => {
      const { asked, seen } = run({ midStream: 'continue', canContinue: ['m2'] }, broken('Once'), {
        m2: [refused, { values: ['New'] }],
        m3: [{ values: ['not asked'] }],
      });
      expect(asked).to.deep.equal(['m2 after "Once"', 'm2']);
      expect(shown(seen.values)).to.equal('Once<connection m2>New');
    });

    it('reports the first failure where the prefix is refused and it may not start over', () => {
      const { seen } = run({ midStream: 'continue', canContinue: ['m2'], restarts: false }, broken('Once'), {
        m2: [refused],
      });
      expect(seen.error?.code).to.equal('connection');
      expect(seen.error?.partial?.text).to.equal('Once');
      expect(seen.error?.attempts.map(({ code }) => code)).to.deep.equal(['connection', 'bad_request']);
    });

    it('tells of the fallback and of the restart', () => {
      const events: SluiceEvent[] = [];
      run({ midStream: 'restart', onEvent: (event) => events.push(event) }, broken('On'), { m2: [{ values: ['x'] }] });
      expect(events.map(({ type, model }) => [type, model])).to.deep.equal([
        ['fallback', 'm1'],
        ['restart', 'm2'],
      ]);
    });
  });

  it('gives the type that the consumer asked for', () => {
    const plain: Observable<string> = of('a').pipe(retryWithJitter({ attempts: 2 }));
    const withMarkers: Observable<string | Restart> = of('a').pipe(retryWithJitter({ restarts: true }));
    const fallback: Observable<string> = of('a').pipe(fallbackModel(['b'], (model) => of(model)));
    // @ts-expect-error: a marker is no string
    const wrong: Observable<string> = of('a').pipe(retryWithJitter({ restarts: true }));
    expect([plain, withMarkers, fallback, wrong]).to.have.length(4);
  });
});

import { expect } from 'chai';
import { of, throwError } from 'rxjs';
import type { Observable } from 'rxjs';
import type { Answer } from '../../lib/core/answer.ts';
import { CallScope } from '../../lib/core/CallScope.ts';
import type { AttemptRecord } from '../../lib/core/errors.ts';
import type { SluiceEvent } from '../../lib/core/events.ts';
import { isRestart } from '../../lib/core/restart.ts';
import type { Restart } from '../../lib/core/restart.ts';
import { fallbackModel } from '../../lib/operators/fallbackModel.ts';
import type { FallbackModelOptions } from '../../lib/operators/FallbackModelOptions.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { failed, partial, recording, scripted } from '../helpers/scripted.ts';
import type { Step } from '../helpers/scripted.ts';

const broken = (text: string): Step => ({
  values: [text],
  error: failed('connection', { partial: partial(text) }),
});
const record: AttemptRecord = {
  attempt: 1,
  model: 'm1',
  code: 'overloaded',
  status: undefined,
  requestId: undefined,
  retryAfterMs: undefined,
  durationMs: 0,
};

/** What `fallbackModel` tells and asks, at the edges. */
describe('FallbackRun', () => {
  let runtime: VirtualRuntime;
  let scope: CallScope;
  let events: SluiceEvent[];

  beforeEach(() => {
    runtime = virtualRuntime();
    scope = CallScope.start(runtime, { model: 'm1' });
    events = [];
  });

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
    const settings = { runtime, continueWith, onEvent: (event: SluiceEvent) => events.push(event) };
    const operator = fallbackModel<string>(Object.keys(models), ask, { ...settings, ...options } as never);
    const seen = recording<string | Restart>(scripted(runtime, first).source.pipe(operator), scope);
    runtime.run();
    return { asked, seen, shown: seen.values.map((value) => (isRestart(value) ? '<>' : value)).join('') };
  }

  it('passes on the very failure of the only model, where it says everything', () => {
    const error = failed('overloaded', { model: 'm1', attempts: [record] });
    expect(run({}, { error }, {}).seen.error).to.equal(error);
  });

  it('names what failed before it came, first', () => {
    scope.call.failed.push({ ...record, model: 'm0' });
    scope.call.dispatched++;
    const { error } = run({}, { error: failed('overloaded') }, { m2: [{ error: failed('connection') }] }).seen;
    expect(error?.attempts.map(({ model }) => model)).to.deep.equal(['m0', 'm1', 'm2']);
  });

  it('tells of those that the prompt does not fit, and of no other that it passes over', () => {
    const options = { promptTokens: 9, maxPromptTokens: { m2: 8, m3: 9, m4: 8 } };
    const answers = { m1: [], m2: [], m3: [{ values: ['ok'] }], m4: [] };
    expect(run(options, { error: failed('overloaded') }, answers).asked).to.deep.equal(['m3']);
    expect(events.map(({ type, model }) => [type, model])).to.deep.equal([
      ['refused', 'm2'],
      ['fallback', 'm1'],
    ]);
  });

  it('keeps apart what a model refused that ask threw', () => {
    const ask = (): never => {
      throw failed('queue_full');
    };
    const { error } = recording(throwError(() => failed('overloaded')).pipe(fallbackModel<string>(['m2'], ask)), scope);
    expect(error?.attempts.map(({ code }) => code)).to.deep.equal(['overloaded', 'queue_full']);
  });

  describe('midStream', () => {
    it('starts over only for a consumer that said it handles markers', () => {
      const { asked, seen } = run({ midStream: 'restart' }, broken('On'), { m2: [{ values: ['Once'] }] });
      expect(asked).to.deep.equal([]);
      expect(seen.error?.code).to.equal('connection');
    });

    it('carries what the last answer had, not what the one before it had', () => {
      const { seen, shown } = run({ midStream: 'restart', restarts: true }, broken('On'), { m2: [broken('Once')] });
      expect(shown).to.equal('On<>Once');
      expect(seen.error?.partial?.text).to.equal('Once');
    });

    it('asks a model that could go on for all of it where nothing has come', () => {
      const options = { midStream: 'continue', canContinue: ['m2'] } as const;
      expect(run(options, { error: failed('overloaded') }, { m2: [{ values: ['Once'] }] }).asked).to.deep.equal(['m2']);
    });

    it('asks for continueWith only where a model was named that it would be called for', () => {
      const ask = (model: string) => of(model);
      expect(() => fallbackModel([], ask, { canContinue: ['m2'] })).not.to.throw();
      expect(() => fallbackModel([], ask, { midStream: 'continue' })).not.to.throw();
      expect(() => fallbackModel([], ask, { midStream: 'continue', canContinue: [] })).not.to.throw();
    });
  });
});

import { expect } from 'chai';
import { CallScope } from '../../lib/core/CallScope.ts';
import type { CallScopeChanges } from '../../lib/core/CallScopeChanges.ts';
import type { CallStage, ErrorCode } from '../../lib/core/errors.ts';
import type { SluiceEvent } from '../../lib/core/events.ts';
import type { Restart } from '../../lib/core/restart.ts';
import { isRestart } from '../../lib/core/restart.ts';
import { createRetryBudget } from '../../lib/operators/createRetryBudget.ts';
import type { RetryWithJitterOptions } from '../../lib/operators/RetryWithJitterOptions.ts';
import { retryWithJitter } from '../../lib/operators/retryWithJitter.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { failed, partial, recording, scripted } from '../helpers/scripted.ts';
import type { Step } from '../helpers/scripted.ts';

const broken = (text: string): Step => ({
  values: [text],
  error: failed('connection', { model: 'm1', partial: partial(text) }),
});

/** What `retryWithJitter` decides at its bounds. */
describe('RetryRun', () => {
  let runtime: VirtualRuntime;
  let events: SluiceEvent[];

  beforeEach(() => {
    runtime = virtualRuntime();
    events = [];
  });

  function run(options: RetryWithJitterOptions<string>, changes: CallScopeChanges, ...steps: Step[]) {
    const script = scripted(runtime, ...steps);
    const settings = { baseMs: 100, jitter: 'none', runtime, ...options } as const;
    const onEvent = (event: SluiceEvent) => events.push(event);
    const operator = retryWithJitter<string>({ ...settings, onEvent, restarts: true });
    const seen = recording<string | Restart>(script.source.pipe(operator), CallScope.start(runtime, changes));
    runtime.run();
    return { script, seen, shown: seen.values.map((value) => (isRestart(value) ? '<>' : value)).join('') };
  }

  describe('a hint', () => {
    const hinted = (retryAfterMs: number): Step => ({ error: failed('rate_limited', { retryAfterMs }) });

    it('of just maxHintMs is slept out', () => {
      const { script } = run({ maxHintMs: 500 }, {}, hinted(500), { values: ['ok'] });
      expect(script.startsMs).to.deep.equal([0, 500]);
      expect(run({ maxHintMs: 500 }, {}, hinted(501), { values: ['ok'] }).script.startsMs).to.have.length(1);
    });

    it('of just the own wait leaves the wait the own one', () => {
      run({}, {}, hinted(100), { values: ['ok'] });
      run({}, {}, hinted(101), { values: ['ok'] });
      const waits = events.map((event) => event.type === 'retry.scheduled' && [event.waitMs, event.waitSource]);
      expect(waits).to.deep.equal([
        [100, 'backoff'],
        [101, 'hint'],
      ]);
    });

    it('is what does not fit before the deadline only where it is longer than the own wait', () => {
      expect(run({}, { deadlineAtMs: 50 }, hinted(100)).seen.error?.code).to.equal('timeout_deadline');
      expect(run({}, { deadlineAtMs: 50 }, hinted(101)).seen.error?.code).to.equal('rate_limited');
    });
  });

  describe('a provider that stays silent', () => {
    const tries = (code: ErrorCode, stage: CallStage | undefined, leads: boolean | undefined): number => {
      const route = leads === undefined ? undefined : { asked: [], leads: () => leads };
      return run({ attempts: 2 }, { route }, { error: failed(code, { while: stage }) }).script.startsMs.length;
    };

    it('is tried again where there is no other model', () => {
      expect(tries('timeout', 'headers', undefined)).to.equal(2);
      expect(tries('timeout', 'headers', false)).to.equal(2);
    });

    it('is left for another model', () => {
      expect(tries('timeout', 'headers', true)).to.equal(1);
      expect(tries('timeout', 'first_content', true)).to.equal(1);
    });

    it('is none that said it was too late, broke off, or fell silent in the middle', () => {
      expect(tries('timeout', undefined, true)).to.equal(2);
      expect(tries('connection', 'headers', true)).to.equal(2);
      expect(tries('timeout', 'streaming', true)).to.equal(2);
    });
  });

  describe('the budget', () => {
    it('earns by the first value of a source that tells nothing else', () => {
      const budget = createRetryBudget({ ratio: 1, minPerSecond: 0 }, runtime);
      run({ budget }, {}, { values: ['a'], hangs: true });
      expect(budget.withdraw(1)).to.be.true;
    });

    it('says what it did not mend', () => {
      const budget = createRetryBudget({ ratio: 0, minPerSecond: 0 }, runtime);
      const { error } = run({ budget }, {}, { error: failed('overloaded') }).seen;
      expect(error?.message).to.equal('the retry budget allows no retry after overloaded');
    });
  });

  it('says which wait did not fit before the deadline, in whole milliseconds', () => {
    const { error } = run({ baseMs: 100.4 }, { deadlineAtMs: 50 }, { error: failed('overloaded') }).seen;
    expect(error?.message).to.equal('the deadline leaves no time to wait 100 ms and try again after overloaded');
  });

  describe('after a stream that broke off', () => {
    it('carries what the last answer had, not what the one before it had', () => {
      const { seen, shown } = run({ attempts: 2, midStream: 'restart' }, {}, broken('On'), broken('Once'));
      expect(shown).to.equal('On<>Once');
      expect(seen.error?.partial?.text).to.equal('Once');
    });

    it('takes a refused request for a refused request where no prefix was sent', () => {
      const refused = { error: failed('bad_request', { status: 400 }) };
      const { script, seen } = run({ midStream: 'restart' }, {}, broken('On'), refused, { values: ['Once'] });
      expect(seen.error?.code).to.equal('bad_request');
      expect(script.startsMs).to.have.length(2);
    });

    it('goes on only for a model that was said to accept a prefix, which none is by default', () => {
      const { source } = scripted(runtime, { values: [' upon'] });
      const continueWith = () => source;
      const first = broken('Once');
      expect(run({ midStream: 'continue', continueWith }, {}, first, { values: ['New'] }).shown).to.equal('Once<>New');
      expect(run({ midStream: 'continue', continueWith, canContinue: true }, {}, first).shown).to.equal('Once upon');
    });
  });

  it('keeps what a failure before the first value carries', () => {
    const { error } = run({}, {}, { error: failed('content_filtered', { partial: partial('') }) }).seen;
    expect(error?.partial).to.deep.equal(partial(''));
  });

  it('asks for continueWith only where it would be called', () => {
    expect(() => retryWithJitter({ canContinue: true })).not.to.throw();
    expect(() => retryWithJitter({ midStream: 'continue' })).not.to.throw();
  });
});

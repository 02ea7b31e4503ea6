import { expect } from 'chai';
import fc from 'fast-check';
import { StageTimers } from '../../lib/sources/StageTimers.ts';
import type { StageLimits } from '../../lib/sources/StageTimers.ts';

const limits: StageLimits = {
  headersMs: 100,
  firstContentMs: 300,
  idleMs: 50,
  tailMs: 20,
  responseMs: 1_000,
  deadlineAtMs: Infinity,
};

describe('StageTimers', () => {
  it('runs nothing before the request is sent', () => {
    const timers = new StageTimers({ ...limits, deadlineAtMs: 10 }, true);
    expect(timers.dueAtMs()).to.equal(Infinity);
    expect(timers.stage).to.equal('entry');
  });

  it('goes through the stages of a stream, each with its own limit', () => {
    const timers = new StageTimers(limits, true);
    timers.dispatched(1_000);
    expect(timers.dueAtMs()).to.equal(1_100);
    expect(timers.cut()).to.deep.equal({ kind: 'limit', stage: 'headers', limitMs: 100 });
    timers.headed();
    expect(timers.dueAtMs()).to.equal(1_300);
    expect(timers.cut()).to.deep.equal({ kind: 'limit', stage: 'first_content', limitMs: 300 });
    timers.progress(1_200);
    expect(timers.dueAtMs()).to.equal(1_250);
    timers.progress(1_240);
    expect(timers.dueAtMs()).to.equal(1_290);
    expect(timers.cut()).to.deep.equal({ kind: 'limit', stage: 'streaming', limitMs: 50 });
    timers.finished(1_260);
    expect(timers.dueAtMs()).to.equal(1_280);
    expect(timers.cut()).to.deep.equal({ kind: 'tail', stage: 'tail' });
  });

  it('names the first content where its limit comes before that of the head', () => {
    const timers = new StageTimers({ ...limits, firstContentMs: 80 }, true);
    timers.dispatched(0);
    expect(timers.dueAtMs()).to.equal(80);
    expect(timers.cut()).to.deep.equal({ kind: 'limit', stage: 'first_content', limitMs: 80 });
  });

  it('has one limit for an answer that is not streamed', () => {
    const timers = new StageTimers(limits, false);
    timers.dispatched(5);
    timers.headed();
    expect(timers.dueAtMs()).to.equal(1_005);
    expect(timers.cut()).to.deep.equal({ kind: 'limit', stage: 'response', limitMs: 1_000 });
  });

  it('takes what turns out to be a stream for one', () => {
    const timers = new StageTimers(limits, false);
    timers.dispatched(0);
    timers.streams();
    expect(timers.dueAtMs()).to.equal(300);
  });

  it('never extends the tail', () => {
    const timers = new StageTimers(limits, true);
    timers.dispatched(0);
    timers.finished(10);
    timers.progress(25);
    expect(timers.dueAtMs()).to.equal(30);
  });

  it('lets the deadline cut up to the first content and not after it', () => {
    const timers = new StageTimers({ ...limits, deadlineAtMs: 40 }, true);
    timers.dispatched(0);
    expect(timers.dueAtMs()).to.equal(40);
    expect(timers.cut()).to.deep.equal({ kind: 'deadline', stage: 'headers' });
    timers.progress(30);
    expect(timers.dueAtMs()).to.equal(80);
  });

  it('stands still while paused, but for the deadline', () => {
    const timers = new StageTimers({ ...limits, deadlineAtMs: 10_000 }, true);
    timers.dispatched(0);
    timers.pause(60);
    expect(timers.dueAtMs()).to.equal(10_000);
    timers.pause(70);
    timers.resume(160);
    timers.resume(170);
    expect(timers.dueAtMs()).to.equal(200);
    timers.progress(180);
    timers.pause(190);
    timers.resume(1_190);
    expect(timers.dueAtMs()).to.equal(1_230);
  });

  it('counts from progress that comes while it is paused', () => {
    const timers = new StageTimers(limits, true);
    timers.dispatched(0);
    timers.progress(10);
    timers.pause(20);
    timers.progress(30);
    timers.resume(40);
    expect(timers.dueAtMs()).to.equal(90);
  });

  it('is never due before the last thing that happened, and never by a number that is none', () => {
    type Step = 'headed' | 'progress' | 'finished' | 'pause' | 'resume';
    const step = fc.tuple(fc.constantFrom<Step>('headed', 'progress', 'finished', 'pause', 'resume'), fc.nat(40));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), fc.boolean(), (steps, streamed) => {
        const timers = new StageTimers(limits, streamed);
        let nowMs = 0;
        timers.dispatched(nowMs);
        for (const [what, waitMs] of steps) {
          nowMs += waitMs;
          if (timers.dueAtMs() <= nowMs) return;
          timers[what](nowMs);
          expect(timers.dueAtMs()).to.be.at.least(nowMs);
        }
      }),
      { numRuns: 300 },
    );
  });
});

import { expect } from 'chai';
import fc from 'fast-check';
import { SluiceError } from '../../../lib/core/errors.ts';
import { DROPPED, SUCCESS } from '../../../lib/core/outcome.ts';
import type { Outcome } from '../../../lib/core/outcome.ts';
import { checkBreakerOptions } from '../../../lib/limits/breakerRules.ts';
import { CircuitBreaker } from '../../../lib/limits/CircuitBreaker.ts';
import type { BreakerTicket } from '../../../lib/limits/CircuitBreaker.ts';
import { breakerRules, MAY, readReply, STATES } from '../../../lib/stores/redis/BreakerCall.ts';
import type { BreakerOp, BreakerReply } from '../../../lib/stores/redis/BreakerCall.ts';
import { SharedCircuit } from '../../../lib/stores/redis/SharedCircuit.ts';

const OPTIONS = {
  consecutiveFailures: 3,
  errorRatio: 0.4,
  windowMs: 2000,
  minCalls: 5,
  openMs: 100,
  openFactor: 2,
  steadyProbes: 1,
  openCapMs: 500,
  halfOpenShare: 0.25,
  halfOpenMaxProbes: 2,
  halfOpenMaxMs: 400,
  rampMs: 200,
};
const FAILED: Outcome = { kind: 'failure', error: new SluiceError('server_error', 'failed') };
const FRESH = [0, 0, 0, 0] as const;

describe('SharedCircuit', () => {
  const rules = breakerRules(checkBreakerOptions(OPTIONS), 1000, 60_000);
  let nowMs = 1_000_000;
  let circuit: SharedCircuit;
  beforeEach(() => {
    circuit = new SharedCircuit(rules, nowMs * 1000, FRESH);
  });

  const call = (process: string, ...ops: readonly BreakerOp[]): BreakerReply =>
    readReply(circuit.call(nowMs * 1000, { process, former: '', last: FRESH, returned: 0, ops }));
  const trip = (): BreakerReply => {
    const { epoch } = call('a');
    return call('a', ['ended', epoch, 0, 3, '']);
  };

  it('is one for all: failures of several processes open it', () => {
    const { epoch } = call('a');
    call('a', ['ended', epoch, 0, 1, '']);
    call('b', ['ended', epoch, 0, 1, '']);
    const { state, leftUs, before } = call('c', ['ended', epoch, 0, 1, '']);

    expect([state, leftUs, before]).to.deep.equal([1, 100_000, [0, 0]]);
  });

  it('lets one probe go, of whichever process comes first', () => {
    trip();
    nowMs += 100;
    expect(call('a', ['ask', 'a/1'], ['ask', 'a/2']).may).to.deep.equal([MAY.probe, MAY.not]);
    expect(call('b', ['ask', 'b/1']).may).to.deep.equal([MAY.not]);
  });

  it('gives the place of a probe back whose process was not heard of for its lease, and keeps that of one that was', () => {
    trip();
    nowMs += 100;
    call('a', ['ask', 'a/1'], ['content', 'a/1']);
    nowMs += 900;
    call('a');
    nowMs += 900;
    expect(call('b', ['ask', 'b/1']).may).to.deep.equal([MAY.not]);
    nowMs += 101;
    expect(call('b', ['ask', 'b/2']).may).to.deep.equal([MAY.probe]);
  });

  it('goes on from what a process knew where the store has forgotten', () => {
    circuit = new SharedCircuit(rules, nowMs * 1000, [1, 70_000, 2, 1]);
    const { state, leftUs, growths, failedProbes } = call('a');

    expect([state, leftUs, growths, failedProbes]).to.deep.equal([1, 70_000, 2, 1]);
  });

  it('takes the trouble that a returned process knows of, unless it knows of some itself', () => {
    const returned = (): BreakerReply =>
      readReply(
        circuit.call(nowMs * 1000, { process: 'z', former: '', last: [1, 70_000, 0, 0], returned: 1, ops: [] }),
      );

    expect(returned().state).to.equal(1);
    nowMs += 70;
    call('a', ['ask', 'a/1']);
    expect(returned().state).to.equal(2);
  });

  it('changes as a breaker of one process does', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.record({ afterMs: fc.oneof(fc.nat(30), fc.nat(300), fc.nat(2500)), op: fc.nat(6), which: fc.nat(9) }),
        ),
        (steps) => {
          nowMs = 5_000_000;
          const clock = { now: () => nowMs };
          const one = new CircuitBreaker(OPTIONS, clock);
          // A lease without an end: one process alone is always heard of.
          circuit = new SharedCircuit(rules, nowMs * 1000, FRESH);
          const out: { readonly ticket: BreakerTicket; readonly epoch: number; readonly id: string }[] = [];
          steps.forEach(({ afterMs, op, which }, i) => {
            nowMs += afterMs;
            if (op < 3) {
              const local = one.ask();
              const reply = call('a', ['ask', `a/${i}`]);
              const [may] = reply.may;
              if (may !== MAY.decide) expect(may === MAY.probe).to.equal(local.kind === 'pass');
              if (local.kind === 'pass') {
                out.push({ ticket: local.ticket, epoch: reply.epoch, id: may === MAY.probe ? `a/${i}` : '' });
              }
            } else {
              const [ended] = out.splice(which % Math.max(1, out.length), 1);
              if (ended && op === 6) {
                one.firstContent(ended.ticket);
                call('a', ['content', ended.id]);
                out.push(ended);
              } else if (ended) {
                const outcome = op === 3 ? SUCCESS : op === 4 ? FAILED : DROPPED;
                one.settle(ended.ticket, outcome);
                call('a', ['ended', ended.epoch, op === 3 ? 1 : op === 4 ? 0 : 2, 1, ended.id]);
              }
            }
            one.advance();
            const reply = call('a');
            const { state, retryAfterMs, consecutiveFailures, calls, failures } = one.snapshot();
            expect(STATES[reply.state]).to.equal(state);
            if (state === 'open') expect(reply.leftUs).to.equal(retryAfterMs * 1000);
            if (state === 'closed') {
              expect([reply.consecutiveFailures, reply.calls, reply.failures]).to.deep.equal([
                consecutiveFailures,
                calls,
                failures,
              ]);
            }
          });
        },
      ),
      { numRuns: 300 },
    );
  });
});

import { expect } from 'chai';
import fc from 'fast-check';
import { SluiceError } from '../../lib/core/errors.ts';
import { DROPPED_UNSENT, SUCCESS } from '../../lib/core/outcome.ts';
import { Admission } from '../../lib/limits/Admission.ts';
import type { AdmissionGrant } from '../../lib/limits/AdmissionGrant.ts';
import type { AdmissionTicket } from '../../lib/limits/AdmissionPool.ts';
import { seededRandom } from '../../lib/testing/seededRandom.ts';

const PER_MINUTE = 1200;
const BURST = 5;
const TOKENS = 60_000;

/** A machine with every kind of limit, and a load drawn from `seed` that asks, ends and cancels at random. */
function play(
  seed: number,
  check: (state: { machine: Admission; nowMs: number; running: Map<AdmissionGrant, AdmissionTicket> }) => void,
  sized = true,
) {
  const random = seededRandom(seed);
  let nowMs = 0;
  const machine = new Admission(
    {
      maxInFlight: 8,
      quota: {
        account: {
          requestsPerMinute: PER_MINUTE,
          burstRequests: BURST,
          tokensPerMinute: TOKENS,
          burstTokens: 4000,
          maxWaitMs: 5000,
          maxWaiting: 40,
        },
      },
      models: { m: { concurrency: { limit: 6 } }, n: { concurrency: { limit: 3 } } },
      tenants: { default: { maxInFlight: 4 }, t0: { reservedInFlight: 3, weight: 2 } },
      priorities: { order: ['interactive', 'batch'], levels: { batch: { maxInFlight: 3 } }, ageingMs: 1000 },
    },
    { now: () => nowMs },
    random,
  );
  const running = new Map<AdmissionGrant, AdmissionTicket>();
  const waiting = new Set<AdmissionTicket>();
  const sent: { atMs: number; tokens: number }[] = [];
  let granted = 0;
  let ended = 0;
  let left = 0;
  let asked = 0;
  const serve = (): void => {
    for (let step = machine.next(); step.kind !== 'wait'; step = machine.next()) {
      if (step.kind === 'changed') continue;
      expect(waiting.delete(step.ticket)).to.equal(true);
      if (step.kind === 'refused') {
        left++;
        continue;
      }
      granted++;
      running.set(step.grant, step.ticket);
      step.grant.dispatched(nowMs);
      sent.push({ atMs: nowMs, tokens: step.grant.reservedTokens });
    }
    check({ machine, nowMs, running });
  };
  for (let i = 0; i < 300; i++) {
    nowMs += Math.floor(random() * 60);
    serve();
    const draw = random();
    if (draw < 0.6) {
      const ticket = machine.ask({
        model: random() < 0.7 ? 'm' : 'n',
        tenant: `t${Math.floor(random() * 4)}`,
        priority: random() < 0.6 ? 'interactive' : 'batch',
        cost: { requests: 1, tokens: sized ? Math.floor(random() ** 3 * 5000) : 0, explicit: true },
      });
      if (ticket.kind === 'ticket') {
        asked++;
        waiting.add(ticket);
      }
    } else if (draw < 0.9) {
      const [grant] = running.keys();
      if (grant) {
        running.delete(grant);
        const error = new SluiceError('bad_request', 'wrong', { status: 400 });
        machine.end(grant, random() < 0.8 ? SUCCESS : { kind: 'failure', error });
        machine.close(grant);
        machine.close(grant);
        ended++;
      }
    } else {
      const [ticket] = waiting;
      if (ticket && machine.cancel(ticket)) {
        waiting.delete(ticket);
        left++;
      }
    }
    serve();
  }
  expect(machine.waiting).to.equal(waiting.size);
  expect(asked).to.equal(granted + left + waiting.size);
  expect(machine.inFlight).to.equal(granted - ended);
  return { sent, machine, running, waiting, advance: (ms: number) => (nowMs += ms), serve };
}

const seeds = fc.integer();
const few = { numRuns: 6 };

describe('Admission', () => {
  it('stays within every limit of what is in flight', () => {
    const within = fc.property(seeds, (seed) => {
      play(seed, ({ machine, running }) => {
        const tickets = [...running.values()];
        const count = (test: (ticket: AdmissionTicket) => boolean): number => tickets.filter(test).length;
        expect(tickets.length).to.be.at.most(8);
        expect(machine.inFlight).to.equal(tickets.length);
        expect(count(({ level }) => level === 1)).to.be.at.most(3);
        expect(count(({ pool }) => pool === machine.poolOf('m'))).to.be.at.most(6);
        expect(count(({ pool }) => pool === machine.poolOf('n'))).to.be.at.most(3);
        for (let i = 1; i < 4; i++) expect(count(({ tenant }) => tenant === `t${i}`)).to.be.at.most(4);
      });
    });
    fc.assert(within, few);
  });

  it('never sends more than the quota allows, in any span of time', () => {
    const within = fc.property(seeds, (seed) => {
      const { sent } = play(seed, () => undefined);
      for (let i = 0; i < sent.length; i++) {
        for (let k = i, tokens = 0; k < sent.length; k++) {
          const spanMs = (sent[k]?.atMs ?? 0) - (sent[i]?.atMs ?? 0);
          tokens += sent[k]?.tokens ?? 0;
          expect(k - i + 1).to.be.at.most(BURST + (PER_MINUTE * spanMs) / 60_000 + 1e-6);
          // One that is larger than the burst passes when the bucket is full.
          expect(tokens).to.be.at.most(5000 + (TOKENS * spanMs) / 60_000 + 1e-6);
        }
      }
    });
    fc.assert(within, few);
  });

  it('lets nobody wait while everything it needs is free', () => {
    const conserving = fc.property(seeds, (seed) => {
      play(
        seed,
        ({ machine, nowMs, running }) => {
          if (machine.inFlight >= 8) return;
          for (const pool of machine.pools.values()) {
            for (const queue of pool.queues) {
              const oldest = queue.oldest();
              if (oldest === undefined) continue;
              const full = oldest.level === 1 && (machine.levels.inFlight[1] ?? 0) >= 3;
              const own = [...running.values()].filter(({ tenant }) => tenant === oldest.tenant).length;
              const tenantFull = oldest.tenant !== 't0' && own >= 4;
              const fits = pool.fit(nowMs, oldest, () => true).targets.length > 0;
              expect(fits && !full && !tenantFull).to.equal(false);
            }
          }
        },
        false,
      );
    });
    fc.assert(conserving, few);
  });

  it('refuses at once one that may not wait, and takes it where there is room', () => {
    const machine = new Admission({ maxInFlight: 1 }, { now: () => 0 }, () => 0);
    const ask = { model: 'm', maxWaitMs: 0, cost: { requests: 1, tokens: 0, explicit: true } };
    expect(machine.ask(ask)).to.include({ kind: 'ticket' });
    expect(machine.next().kind).to.equal('granted');
    expect(machine.ask(ask)).to.deep.include({ kind: 'refused', code: 'queue_timeout' });
    expect([machine.waiting, machine.inFlight]).to.deep.equal([0, 1]);
  });

  it('opens the breaker of a probe that is stuck, and lets the next one probe when its time has come', () => {
    let nowMs = 0;
    const breaker = { consecutiveFailures: 1, openMs: 10, halfOpenMaxMs: 30, rampMs: 0, steadyProbes: 0 };
    const machine = new Admission({ models: { m: { breaker } } }, { now: () => nowMs }, () => 0);
    const ask = { model: 'm', cost: { requests: 1, tokens: 0, explicit: true } };
    const go = (): AdmissionGrant => {
      expect(machine.ask(ask)).to.include({ kind: 'ticket' });
      const step = machine.next();
      if (step.kind !== 'granted') return expect.fail(step.kind);
      return step.grant;
    };
    const first = go();
    machine.end(first, { kind: 'failure', error: new SluiceError('server_error', 'down', { status: 500 }) });
    machine.close(first);
    nowMs = 10;
    const probe = go();
    expect(machine.next()).to.deep.equal({ kind: 'wait', untilMs: 40 });

    nowMs = 40;
    const step = machine.next();
    if (step.kind !== 'changed') return expect.fail(step.kind);
    expect(step.changes.flatMap((change) => change.breaker)).to.deep.equal([
      { from: 'half_open', to: 'open', reason: 'probe_stuck' },
    ]);
    expect(step.changes.flatMap((change) => change.revoked)).to.deep.equal([probe]);
    expect(machine.ask(ask)).to.include({ kind: 'refused', code: 'circuit_open' });
    nowMs = 60;
    expect(go()).to.not.equal(probe);
  });

  it('comes to rest: whoever still waits is granted or refused once the others have ended', () => {
    const resting = fc.property(seeds, (seed) => {
      const { machine, running, waiting, advance, serve } = play(seed, () => undefined);
      for (let turn = 0; turn < 400 && (waiting.size > 0 || running.size > 0); turn++) {
        for (const grant of running.keys()) {
          machine.end(grant, DROPPED_UNSENT);
          machine.close(grant);
        }
        running.clear();
        advance(50);
        serve();
      }
      expect([machine.waiting, machine.inFlight]).to.deep.equal([0, 0]);
      expect(machine.tenants.owedSlots).to.equal(0);
    });
    fc.assert(resting, few);
  });
});

import { expect } from 'chai';
import { LiveBoard } from '../../../lib/http/live/LiveBoard.ts';
import { virtualRuntime } from '../../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../../lib/testing/virtualRuntime.ts';
import { deploymentOf, breakerOf, eventOf, FakeSource, snapshotOf } from './parts.ts';

const WALL = Date.UTC(2026, 0, 1);

describe('LiveBoard', () => {
  let runtime: VirtualRuntime;
  let source: FakeSource;
  let board: LiveBoard;
  beforeEach(() => {
    runtime = virtualRuntime();
    source = new FakeSource();
    board = new LiveBoard(runtime.clock, source.snapshot, { maxModels: 5, maxTenants: 5 });
  });

  /** A whole call that ends now. */
  function call(callId: string, more: { readonly failed?: boolean; readonly attempts?: number } = {}): void {
    const atMs = runtime.clock.now();
    const { failed = false, attempts = 1 } = more;
    board.hear(eventOf('granted', atMs, { callId }));
    board.hear(eventOf('attempt.started', atMs, { callId }));
    board.hear(eventOf('committed', atMs + 40, { callId }));
    board.hear(eventOf('attempt.ended', atMs + 50, { callId, durationMs: 50 }));
    const outcome = failed ? ('failure' as const) : ('success' as const);
    const code = failed ? ('overloaded' as const) : undefined;
    board.hear(eventOf('call.ended', atMs + 50, { callId, outcome, code, attempts, durationMs: 50 }));
  }

  it('shows nothing of nothing', () => {
    const frame = board.frame();
    expect(frame).to.deep.include({
      wallMs: WALL,
      beganWallMs: WALL,
      points: [],
      changes: [],
      calls: [],
      troubled: [],
    });
    expect(frame.totals).to.deep.include({ calls: 0, rateLimitedShare: null, amplification: null, codes: [] });
    expect(frame.firstContent).to.deep.equal({ p50Ms: null, p95Ms: null });
  });

  it('puts calls, shares, first content and points together', () => {
    call('a');
    call('b', { failed: true });
    board.hear(eventOf('attempt.ended', 60, { callId: 'other', outcome: 'failure', status: 429 }));
    runtime.advance(1_000);
    const frame = board.frame();
    expect(frame.calls.map(({ callId, number }) => [callId, number])).to.deep.equal([
      ['a', 1],
      ['b', 2],
    ]);
    expect(frame.totals).to.deep.include({
      calls: 2,
      failed: 1,
      attempts: 3,
      rateLimited: 1,
      codes: [['overloaded', 1]],
    });
    expect(frame.firstContent.p50Ms).to.be.closeTo(40, 2);
    expect(frame.points).to.have.length(1);
  });

  it('lists calls that failed or were tried again apart', () => {
    call('fine');
    call('failed', { failed: true });
    call('again', { attempts: 2 });
    expect(board.frame().troubled.map(({ callId }) => callId)).to.deep.equal(['failed', 'again']);
  });

  it('gives a frame what is new, and thirty calls at most', () => {
    call('a');
    runtime.advance(1_000);
    expect(board.frame().points).to.have.length(1);
    const { place } = board;
    expect(board.frame(place)).to.deep.include({ points: [], calls: [], troubled: [] });
    for (let i = 0; i < 500; i++) call(`b${i}`, { failed: true });
    runtime.advance(1_000);
    const frame = board.frame(place);
    expect([frame.points.length, frame.calls.length, frame.troubled.length]).to.deep.equal([1, 30, 30]);
    expect(frame.calls.at(-1)?.number).to.equal(501);
    expect([board.frame().points.length, board.frame().calls.length]).to.deep.equal([2, 100]);
  });

  it('shows the end of a call whose beginning it missed', () => {
    board.hear(eventOf('committed', 10, { callId: 'old' }));
    board.hear(eventOf('attempt.ended', 20, { callId: 'old' }));
    board.hear(eventOf('call.ended', 20, { callId: 'old', durationMs: 5_000 }));
    const [old] = board.frame().calls;
    expect(old).to.deep.include({
      callId: 'old',
      durationMs: 5_000,
      attemptCount: 1,
      attempts: [],
      beganWallMs: WALL - 4_980,
    });
    expect(board.frame().firstContent.p50Ms).to.equal(null);
  });

  it('keeps nothing of attempts that end after their call', () => {
    for (let i = 0; i < 20_000; i++) board.hear(eventOf('attempt.ended', 0, { callId: `late${i}` }));
    call('a');
    expect(board.frame().calls.at(-1)?.attempts).to.have.length(1);
  });

  it('counts calls beyond ten thousand at once, and follows no more', () => {
    for (let i = 0; i < 10_000; i++) board.hear(eventOf('granted', 0, { callId: `open${i}` }));
    call('beyond');
    expect(board.frame().calls.at(-1)).to.deep.include({ callId: 'beyond', attempts: [] });
    board.hear(eventOf('call.ended', 50, { callId: 'open0' }));
    call('within');
    expect(board.frame().calls.at(-1)?.attempts).to.have.length(1);
  });

  it('takes a rate limit for a 429 also where a transport has no status', () => {
    board.hear(eventOf('attempt.ended', 0, { outcome: 'failure', code: 'rate_limited' }));
    board.hear(eventOf('attempt.ended', 0, { outcome: 'failure', code: 'overloaded', status: 503 }));
    expect(board.frame().totals.rateLimitedShare).to.equal(0.5);
  });

  it('shows a breaker that opened and closed within a second', () => {
    source.standing = snapshotOf({
      admission: { models: { m: { waiting: 0, deployments: [deploymentOf('m', { breaker: breakerOf('closed') })] } } },
    });
    board.hear(eventOf('breaker.changed', 100));
    board.hear(eventOf('breaker.changed', 200, { from: 'open', to: 'closed', reason: 'probe_succeeded' }));
    runtime.advance(1_000);
    const frame = board.frame();
    expect(frame.points[0]?.breakers).to.deep.equal({ m: 'open' });
    expect(frame.changes.map(({ to }) => to)).to.deep.equal(['open', 'closed']);
  });

  it('is not bent by a correction of the wall clock', () => {
    runtime.advance(1_000);
    runtime.stepWall(3_600_000);
    expect(board.frame().wallMs).to.equal(WALL + 1_000);
  });

  it('bounds what goes out, whatever happens', () => {
    const long = 'x'.repeat(2_000);
    for (let i = 0; i < 2_000; i++) {
      board.hear(eventOf('cooldown', i, { model: `${i}${long}` }));
      for (let attempt = 1; attempt <= 20; attempt++) {
        board.hear(eventOf('attempt.started', i, { callId: `c${i}`, attempt, model: long }));
        board.hear(eventOf('attempt.ended', i, { callId: `c${i}`, attempt, model: long, code: 'server_error' }));
      }
      board.hear(eventOf('call.ended', i, { callId: `c${i}`, attempts: 20, tenant: long }));
    }
    expect(JSON.stringify(board.frame()).length).to.be.below(700_000);
    expect(JSON.stringify(board.frame({ points: 0, calls: 0, troubled: 0 })).length).to.be.below(250_000);
  });
});

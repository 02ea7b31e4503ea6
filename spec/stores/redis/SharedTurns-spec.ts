import { expect } from 'chai';
import type { LaneOp, LanesReply } from '../../../lib/stores/redis/LanesCall.ts';
import { SharedTurns } from '../../../lib/stores/redis/SharedTurns.ts';

const rules = { leaseUs: 1000, guardUs: 500, keepMs: 1 };
const DONE = [0];

describe('SharedTurns', () => {
  let turns: SharedTurns;

  beforeEach(() => {
    turns = new SharedTurns(rules, 100, 0);
  });

  const call = (nowUs: number, process: string, ops: LaneOp[] = [['look']], epoch = 0, known = 0): LanesReply =>
    turns.call(nowUs, { process, epoch, known, ops });
  const enter = (lane: string, supersede: 0 | 1 = 0, maxWaiting = 9): LaneOp => ['enter', lane, maxWaiting, supersede];

  it('names places by the time they were asked for, each by a number of its own', () => {
    expect(call(100, 'p', [enter('a'), enter('a'), enter('b')])).to.deep.equal([
      100,
      1,
      3,
      [],
      [
        [1, 100, 100],
        [2, 101, 1],
        [1, 102, 102],
      ],
    ]);
    expect(call(110, 'q', [enter('a')])[4]).to.deep.equal([[2, 110, 2]]);
  });

  it('passes a lane on to whoever came first, and tells their process with its next call', () => {
    call(100, 'p', [enter('a')]);
    call(101, 'q', [enter('a')]);
    call(102, 'p', [enter('a')]);
    expect(call(110, 'p', [['leave', 'a', 100]])).to.deep.equal([100, 0, 1, [], [DONE]]);
    expect(call(120, 'q')[3]).to.deep.equal([[101, 110]]);
    expect(call(130, 'q')[3]).to.deep.equal([]);
    expect(call(140, 'q', [['leave', 'a', 101]])[2]).to.equal(0);
    expect(call(150, 'p')[3]).to.deep.equal([[102, 140]]);
  });

  it('says in the reply to a release that the next turn is of the same process', () => {
    call(100, 'p', [enter('a'), enter('a')]);
    expect(call(110, 'p', [['leave', 'a', 100]])[3]).to.deep.equal([[101, 110]]);
  });

  it('lets nobody release what is not theirs', () => {
    call(100, 'p', [enter('a')]);
    expect(call(110, 'q', [['leave', 'a', 100], enter('a')])[4]).to.deep.equal([DONE, [2, 110, 1]]);
  });

  it('says how long the turn has run where no more may wait', () => {
    call(100, 'p', [enter('a'), enter('a')]);
    expect(call(150, 'q', [enter('a', 0, 1)])).to.deep.equal([100, 1, 0, [], [[3, 50, 1]]]);
  });

  it('ends everybody for one that supersedes, which starts once the running turn has left', () => {
    call(100, 'p', [enter('a'), enter('a')]);
    expect(call(110, 'q', [enter('a', 1)])[4]).to.deep.equal([[2, 110, 1]]);
    const told = [
      [100, 0],
      [101, 0],
    ];
    expect(call(120, 'p')[3]).to.deep.equal(told);
    // Until it has left: an answer can be lost.
    expect(call(121, 'p')[3]).to.deep.equal(told);
    expect(call(130, 'p', [['leave', 'a', 101]])[3]).to.deep.equal([[100, 0]]);
    expect(call(131, 'q')[3]).to.deep.equal([]);
    call(132, 'p', [['leave', 'a', 100]]);
    expect(call(140, 'q')[3]).to.deep.equal([[110, 132]]);
  });

  it('passes on all that a process had of which nothing was heard for a lease', () => {
    call(100, 'p', [enter('a'), enter('b'), enter('c')]);
    call(101, 'q', [enter('a'), enter('c')]);
    call(102, 'p', [enter('a')]);
    call(900, 'q', [enter('a')]);
    expect(call(1102, 'q')[3]).to.deep.equal([]);
    expect(call(1103, 'q')[3]).to.deep.equal([
      [103, 1103],
      [104, 1104],
    ]);
    expect(call(1104, 'q', [['leave', 'a', 103]])[3]).to.deep.equal([[900, 1105]]);
  });

  it('has nothing for a process that comes back after its lease, and says so', () => {
    call(100, 'p', [enter('a')]);
    expect(call(1101, 'p')).to.deep.equal([100, 1, 0, [], [DONE]]);
    expect(call(1102, 'q', [enter('a')])[4]).to.deep.equal([[1, 1102, 1102]]);
    expect(call(1103, 'p', [['again', 'a', 100, 100]], 1)[4]).to.deep.equal([[4]]);
  });

  it('keeps the places that the first call of an epoch names, and gives up the others', () => {
    call(100, 'p', [enter('a'), enter('a'), enter('b')]);
    call(101, 'q', [enter('b')]);
    const again = call(
      110,
      'p',
      [
        ['again', 'a', 101, 0],
        ['again', 'a', 100, 100],
      ],
      1,
    );
    expect(again).to.deep.equal([
      100,
      0,
      2,
      [],
      [
        [2, 101, 1],
        [1, 100, 100],
      ],
    ]);
    expect(call(120, 'q')[3]).to.deep.equal([[103, 110]]);
  });

  it('tells again of a lane that a process was given, where that answer was lost', () => {
    call(100, 'p', [enter('a')]);
    call(101, 'q', [enter('a')]);
    call(102, 'p', [['leave', 'a', 100]]);
    call(103, 'q');
    expect(call(104, 'q', [['again', 'a', 101, 0]], 1)[4]).to.deep.equal([[1, 101, 102]]);
  });

  it('does nothing for a call that is late', () => {
    call(100, 'p', [enter('a')], 1);
    expect(call(101, 'p', [['leave', 'a', 100]], 0)).to.deep.equal([100, 0, 0, [], []]);
    expect(call(102, 'q', [enter('a')])[4]).to.deep.equal([[2, 102, 1]]);
  });

  it('gives out no lane for a while where whoever calls knew another one, so that all can name their places', () => {
    turns = new SharedTurns(rules, 1000, 7);
    expect(call(1000, 'q', [enter('a')], 0, 7)[4]).to.deep.equal([[2, 1000, 1]]);
    expect(call(1100, 'q')[3]).to.deep.equal([]);
    const again = call(
      1200,
      'p',
      [
        ['again', 'a', 500, 0],
        ['again', 'b', 400, 450],
        ['again', 'a', 300, 0],
      ],
      1,
      7,
    );
    expect(again[4]).to.deep.equal([
      [2, 500, 1],
      [1, 400, 450],
      [2, 300, 1],
    ]);
    expect(call(1499, 'p', [], 1)[3]).to.deep.equal([]);
    expect(call(1500, 'p', [], 1)[3]).to.deep.equal([[300, 1500]]);
    expect(call(1501, 'p', [['leave', 'a', 300]], 1)[3]).to.deep.equal([[500, 1501]]);
    call(1502, 'p', [['leave', 'a', 500]], 1);
    expect(call(1503, 'q')[3]).to.deep.equal([[1000, 1502]]);
  });

  it('begins that when the first comes who knew another one, and only then', () => {
    call(100, 'q', [enter('a')], 0, 0);
    expect(call(200, 'p', [['again', 'a', 50, 60], enter('b')], 0, 7)[4]).to.deep.equal([[4], [2, 200, 1]]);
    expect(call(700, 'p', [enter('c')], 0, 100)[4]).to.deep.equal([[1, 700, 700]]);
  });

  it('gives tokens above those it is told of', () => {
    call(100, 'p', [['again', 'a', 5000, 6000]]);
    expect(call(101, 'p', [enter('a')])[4]).to.deep.equal([[2, 6001, 1]]);
    expect(call(102, 'p', [['leave', 'a', 5000]])[3]).to.deep.equal([[6001, 6002]]);
  });
});

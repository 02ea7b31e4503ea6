import { expect } from 'chai';
import { AdmissionLevels } from '../../lib/limits/AdmissionLevels.ts';

const levels = (...names: string[]): { name: string; maxInFlight: number }[] =>
  names.map((name, i) => ({ name, maxInFlight: i === 0 ? Infinity : 3 }));

describe('AdmissionLevels', () => {
  it('stands for the most urgent where none is named, and refuses one that there is not', () => {
    const machine = new AdmissionLevels(levels('now', 'later'));
    expect([undefined, 'now', 'later'].map((name) => machine.indexOf(name))).to.deep.equal([0, 0, 1]);
    expect(() => machine.indexOf('never')).to.throw('priority must be one of now, later');
  });

  it('is full at its ceiling, or at what this process may have of it', () => {
    const machine = new AdmissionLevels(levels('now', 'later'));
    machine.move(0, 100);
    machine.move(1, 2);
    expect([machine.full(0), machine.full(1)]).to.deep.equal([false, false]);
    machine.move(1, 1);
    expect(machine.full(1)).to.equal(true);
    machine.move(1, -2);
    expect(machine.inFlight).to.deep.equal([100, 1]);
    machine.lent.set('later', 1);
    expect([machine.full(0), machine.full(1)]).to.deep.equal([false, true]);
    machine.lent.set('later', 2);
    expect(machine.full(1)).to.equal(false);
  });

  it('knows where one stands that came before priorities have changed, however often', () => {
    const machine = new AdmissionLevels(levels('a', 'b', 'c'));
    const { places } = machine;
    const now = (): number[] => places.map((place) => machine.levelOf(place));
    expect(now()).to.deep.equal([0, 1, 2]);
    machine.reload(levels('c', 'x', 'a'));
    expect(now()).to.deep.equal([2, 1, 0]);
    expect(machine.places.map((place) => machine.levelOf(place))).to.deep.equal([0, 1, 2]);
    machine.reload(levels('a', 'x', 'c'));
    expect(now()).to.deep.equal([0, 1, 2]);
    machine.reload(levels('c', 'a'));
    expect(now()).to.deep.equal([1, 1, 0]);
  });

  it('counts those of a priority that is gone where they stand now, none more urgent than it was', () => {
    const machine = new AdmissionLevels(levels('a', 'b', 'c', 'd'));
    for (const [level, count] of [1, 20, 300, 4000].entries()) machine.move(level, count);
    expect(machine.reload(levels('c', 'x', 'a'))).to.deep.equal([2, 1, 0, 2]);
    expect(machine.inFlight).to.deep.equal([300, 20, 4001]);
    expect(machine.indexOf('a')).to.equal(2);
    expect(() => machine.indexOf('b')).to.throw('priority');
    expect([machine.full(0), machine.full(1)]).to.deep.equal([false, true]);
  });
});

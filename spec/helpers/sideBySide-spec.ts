import { expect } from 'chai';
import Mocha from 'mocha';
import { sideBySide } from './sideBySide.ts';

describe('sideBySide', () => {
  const log: string[] = [];
  const test = sideBySide(2);
  for (const name of ['a', 'b', 'c']) {
    test(`plays ${name}`, async () => {
      log.push(`${name} begins`);
      await new Promise((resolve) => setImmediate(resolve));
      log.push(`${name} ends`);
    });
  }

  it('begins so many at a time, and each once', () => {
    expect(log).to.have.length(6);
    const at = (entry: string): number => log.indexOf(entry);
    expect(at('b begins')).to.be.within(1, at('a ends') - 1);
    expect(at('c begins')).to.be.above(at('a ends'));
    expect(at('c ends')).to.be.above(at('c begins'));
  });

  it('lets each fail by its own name, also one that failed while another was played', async () => {
    const failed: string[] = [];
    const mocha = new Mocha({ reporter: function silent() {} as never });
    const inIt = {} as typeof globalThis;
    mocha.suite.emit('pre-require', inIt, '', mocha);
    const outside = { it: globalThis.it, after: globalThis.after };
    Object.assign(globalThis, { it: inIt.it, after: inIt.after });
    try {
      const inner = sideBySide(3);
      inner('right', () => new Promise((resolve) => setTimeout(resolve, 20)));
      inner('wrong', () => {
        throw new Error('wrong');
      });
      inner('late', () => Promise.reject(new Error('late')));
    } finally {
      Object.assign(globalThis, outside);
    }
    await new Promise((resolve) => mocha.run(resolve).on('fail', (test) => failed.push(test.title)));
    expect(failed).to.deep.equal(['wrong', 'late']);
  });
});

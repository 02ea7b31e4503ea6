import { expect } from 'chai';
import { Keyed } from '../../lib/operators/Keyed.ts';

class Thing {
  readonly key: string;
  idle = true;
  constructor(key: string) {
    this.key = key;
  }
}

describe('Keyed', () => {
  const keyedThings = (maxKeys: number): { readonly made: string[]; readonly keyed: Keyed<Thing> } => {
    const made: string[] = [];
    const keyed = new Keyed((key) => {
      made.push(key);
      return new Thing(key);
    }, maxKeys);
    return { made, keyed };
  };

  it('makes an entry when it is first used, and only then', () => {
    const { made, keyed } = keyedThings(2);
    const at = keyed.at('a');
    expect(made).to.deep.equal([]);

    expect(at()).to.equal(at());
    expect(keyed.at('a')()).to.equal(at());
    expect(made).to.deep.equal(['a']);
  });

  it('forgets the one used least recently when there are too many', () => {
    const { made, keyed } = keyedThings(2);
    for (const key of ['a', 'b', 'a', 'c', 'a', 'b']) keyed.at(key)();

    expect(made).to.deep.equal(['a', 'b', 'c', 'b']);
  });

  it('forgets none that is in use, and makes room once they are idle', () => {
    const { made, keyed } = keyedThings(2);
    const things = ['a', 'b', 'c'].map((key) => {
      const thing = keyed.at(key)();
      thing.idle = false;
      return thing;
    });
    for (const key of ['a', 'b', 'c']) keyed.at(key)();
    expect(made).to.deep.equal(['a', 'b', 'c']);

    for (const thing of things) thing.idle = true;
    keyed.at('d')();
    keyed.at('c')();
    expect(made).to.deep.equal(['a', 'b', 'c', 'd']);
    keyed.at('a')();
    expect(made.at(-1)).to.equal('a');
  });

  it('forgets one that is idle behind one that is in use', () => {
    const { made, keyed } = keyedThings(2);
    keyed.at('busy')().idle = false;
    for (const key of ['idle', 'c', 'busy', 'idle']) keyed.at(key)();
    expect(made).to.deep.equal(['busy', 'idle', 'c', 'idle']);
  });

  it('finds the entry of today through a view that was kept', () => {
    const { made, keyed } = keyedThings(1);
    const kept = keyed.at('a');
    kept();
    keyed.at('b')();

    expect(kept()).to.equal(keyed.at('a')());
    expect(made).to.deep.equal(['a', 'b', 'a']);
  });

  it('refuses an empty key and a wrong bound', () => {
    expect(() => keyedThings(1).keyed.at('')).to.throw('key must be a string that is not empty');
    expect(() => keyedThings(0)).to.throw('maxKeys must be');
    expect(() => keyedThings(NaN)).to.throw('maxKeys must be');
  });
});

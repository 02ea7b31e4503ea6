import { expect } from 'chai';
import { explore } from './explore.ts';
import type { Deed, World } from './explore.ts';
import { MODEL_CHECKS } from './models.ts';

for (const { machine, of, short, broken } of MODEL_CHECKS) {
  describe(`${machine}, in every state that ${of[0]} can bring it into`, () => {
    it('breaks no rule, is the same after every way there, and can always come to its end', () => {
      const { violation, states } = explore(short);
      expect(violation).to.equal(undefined);
      expect(states).to.be.above(300);
    });

    for (const [what, make, found] of broken) {
      it(`is found out where it ${what}`, () => {
        const { violation } = explore(make);
        expect(violation?.what ?? 'nothing found').to.match(found);
      });
    }
  });
}

/** Counts up to 4 by ones and twos. What is wrong with it is passed in. */
class Counter implements World {
  readonly #wrong: { readonly stuckAt?: number; readonly brokenAt?: number; readonly forgets?: boolean };
  #count = 0;
  #last = 0;

  constructor(wrong: { stuckAt?: number; brokenAt?: number; forgets?: boolean } = {}) {
    this.#wrong = wrong;
  }

  deeds(): readonly Deed[] {
    if (this.#count === this.#wrong.stuckAt) return [];
    return [1, 2].filter((by) => this.#count + by <= 4).map((by) => [`${by} more`, () => this.#add(by)]);
  }

  key(): string {
    return `${this.#count}`;
  }

  wrong(): string | undefined {
    return this.#count === this.#wrong.brokenAt ? `counts to ${this.#count}` : undefined;
  }

  ended(): boolean {
    return this.#count === 4;
  }

  #add(by: number): unknown {
    this.#count += by;
    const before = this.#last;
    this.#last = by;
    return this.#wrong.forgets ? [this.#count, before] : this.#count;
  }
}

describe('explore', () => {
  it('visits every state once, and does every deed in each', () => {
    expect(explore(() => new Counter())).to.deep.include({ states: 5, deepest: 2, violation: undefined });
  });

  it('tells the shortest way to what is wrong', () => {
    const { violation } = explore(() => new Counter({ brokenAt: 3 }));
    expect(violation).to.deep.equal({ what: 'counts to 3', trace: ['1 more', '2 more'] });
  });

  it('tells from where the end cannot be reached', () => {
    const { violation } = explore(() => new Counter({ stuckAt: 1 }));
    expect(violation).to.deep.equal({ what: 'the end cannot be reached from here', trace: ['1 more'] });
  });

  it('tells where what was taken for one state is two', () => {
    const { violation } = explore(() => new Counter({ forgets: true }));
    expect(violation?.what).to.contain('in what should be the same state');
    expect(violation?.trace).to.deep.equal(['1 more', '1 more']);
  });
});

import { expect } from 'chai';
import { hasCode, leftOut, linesWithoutReason } from '../../.ci/uncoveredLines.ts';
import type { FileCoverage } from '../../.ci/uncoveredLines.ts';

/** How often each line was reached, from the first one on. */
function reached(...counts: readonly number[]): FileCoverage {
  const entries = counts.map((count, at) => [String(at), { line: at + 1, count }] as const);
  return {
    statementMap: Object.fromEntries(entries.map(([id, { line }]) => [id, { start: { line } }])),
    s: Object.fromEntries(entries.map(([id, { count }]) => [id, count])),
  };
}

describe('lines without coverage', () => {
  it('are none where all were reached', () => {
    expect(linesWithoutReason(reached(1, 5, 1), 'a\nb\nc')).to.deep.equal([]);
  });

  it('are told in one where they follow each other', () => {
    expect(linesWithoutReason(reached(0, 1, 0, 0), 'a\nb\nc\nd')).to.deep.equal([
      { from: 1, to: 1, why: 'is not covered' },
      { from: 3, to: 4, why: 'is not covered' },
    ]);
  });

  it('may be left out with a reason only', () => {
    const left = (comment: string): readonly number[] =>
      linesWithoutReason(reached(1, 1), `a\n${comment}`).map(({ from }) => from);
    expect(left('/* c8 ignore next -- only a runtime without streams gets here */')).to.deep.equal([]);
    expect(left('/* c8 ignore start -- only a runtime without streams gets here */')).to.deep.equal([]);
    expect(left('/* c8 ignore next 3 -- only a runtime without streams gets here */')).to.deep.equal([]);
    for (const comment of ['/* c8 ignore next */', '/* c8 ignore next 2 -- why */', '/* v8 ignore start */']) {
      expect(left(comment), comment).to.deep.equal([2]);
    }
    expect(left('/* c8 ignore stop */')).to.deep.equal([]);
  });

  it('are looked for in files that no spec loads, if there is anything to run in them', () => {
    expect(
      hasCode("import type { A } from './A.ts';\n/** B */\nexport interface B {\n  readonly a: A; // one\n}\n"),
    ).to.equal(false);
    expect(hasCode('export type A = 1;\nexport {};\n')).to.equal(false);
    expect(hasCode('export type A = 1;\nexport const a: A = 1;\n')).to.equal(true);
    expect(hasCode("export { a, b } from './a.ts';\nexport type { C } from './c.ts';\n")).to.equal(false);
    expect(hasCode("import './a.ts';\n")).to.equal(true);
  });

  it('are counted where they are left out', () => {
    expect(
      leftOut('a\n/* c8 ignore next -- never */\nb\n/* c8 ignore start -- never */\nc\n/* c8 ignore stop */'),
    ).to.equal(2);
  });
});

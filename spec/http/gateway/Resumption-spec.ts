import { expect } from 'chai';
import fc from 'fast-check';
import { Delivered } from '../../../lib/http/gateway/Delivered.ts';
import { Resumption } from '../../../lib/http/gateway/Resumption.ts';

type Piece = readonly [choice: number, field: 'content' | 'reasoning_content', text: string];

const chunkOf = ([index, field, text]: Piece): unknown => ({
  id: 'b',
  choices: [{ index, delta: { [field]: text }, finish_reason: null }],
});

const texts = fc.record({
  '0 reasoning_content': fc.string({ maxLength: 12 }),
  '0 content': fc.string({ minLength: 1, maxLength: 20 }),
  '1 content': fc.string({ maxLength: 12 }),
});
type Texts = Record<'0 reasoning_content' | '0 content' | '1 content', string>;

/** The texts cut up anywhere, each in order. */
function pieces(all: Texts, cuts: readonly number[]): readonly Piece[] {
  let cut = 0;
  return Object.entries(all).flatMap(([place, text]) => {
    const [index = '0', field = 'content'] = place.split(' ');
    const parts: Piece[] = [];
    for (let at = 0; at < text.length;) {
      const length = 1 + ((cuts[cut++ % cuts.length] ?? 0) % 5);
      parts.push([Number(index), field as Piece[1], text.slice(at, at + length)]);
      at += length;
    }
    return parts;
  });
}

/** What a client puts together. */
function read(chunks: readonly unknown[]): Map<string, string> {
  const said = new Map<string, string>();
  for (const chunk of chunks as { choices: { index: number; delta: Record<string, string> }[] }[]) {
    for (const { index, delta } of chunk.choices) {
      for (const [field, text] of Object.entries(delta))
        said.set(`${index} ${field}`, (said.get(`${index} ${field}`) ?? '') + text);
    }
  }
  return said;
}

const cutsOf = fc.array(fc.nat(), { minLength: 1, maxLength: 8 });

describe('Resumption', () => {
  it('adds up to the new answer, wherever the first broke off and however both are cut up', () => {
    fc.assert(
      fc.property(texts, cutsOf, cutsOf, fc.nat(), (all, first, second, brokeAt) => {
        const before = pieces(all, first);
        const sent: unknown[] = before.slice(0, brokeAt % (before.length + 1)).map(chunkOf);
        const delivered = new Delivered('chat');
        for (const chunk of sent) delivered.note(chunk);
        const resumption = new Resumption(delivered);
        for (const piece of pieces(all, second)) {
          const rest = resumption.take(chunkOf(piece));
          if (rest === undefined) throw new Error('it took this for another answer');
          sent.push(...rest);
        }
        expect(resumption.caughtUp).to.equal(true);
        expect(read(sent)).to.deep.equal(read(before.map(chunkOf)));
      }),
      { numRuns: 300 },
    );
  });

  it('passes on nothing of an answer that differs in what was delivered', () => {
    fc.assert(
      fc.property(texts, cutsOf, cutsOf, fc.nat(), (all, first, second, at) => {
        const delivered = new Delivered('chat');
        for (const piece of pieces(all, first)) delivered.note(chunkOf(piece));
        const text = all['0 content'];
        const i = at % text.length;
        const other = text[i] === 'x' ? 'y' : 'x';
        const differs = { ...all, '0 content': text.slice(0, i) + other + text.slice(i + 1) };
        const resumption = new Resumption(delivered);
        const taken = pieces(differs, second).map((piece) => resumption.take(chunkOf(piece)));
        expect(taken.flatMap((rest) => rest ?? [])).to.deep.equal([]);
        expect(taken.includes(undefined)).to.equal(true);
        expect(resumption.caughtUp).to.equal(false);
      }),
      { numRuns: 300 },
    );
  });
});

import { expect } from 'chai';
import { ToolCallBuilder } from '../../lib/wire/ToolCallBuilder.ts';

function build(...pieces: readonly unknown[]): ToolCallBuilder {
  const builder = new ToolCallBuilder();
  for (const piece of pieces) builder.add(piece);
  return builder;
}

const callsOf = (...pieces: readonly unknown[]): unknown =>
  build(...pieces)
    .snapshot()
    .map(({ id, name, arguments: args }) => [id, name, args]);

describe('ToolCallBuilder', () => {
  it('starts without calls', () => {
    expect(new ToolCallBuilder().snapshot()).to.deep.equal([]);
  });

  it('says whether a piece held anything, and opens no call for one that did not', () => {
    const builder = new ToolCallBuilder();
    for (const piece of [undefined, null, 'x', 5, {}, { index: 0, type: 'function', function: { name: '' } }]) {
      expect(builder.add(piece), JSON.stringify(piece)).to.equal(false);
    }
    expect(builder.size).to.equal(0);
    expect(builder.add({ id: 't1' })).to.equal(true);
    expect(builder.size).to.equal(1);
  });

  it('gives a call the type function until a piece names another, which stays', () => {
    const types = (...pieces: readonly unknown[]): readonly string[] =>
      build(...pieces)
        .snapshot()
        .map((call) => call.type);
    expect(types({ id: 't1' })).to.deep.equal(['function']);
    expect(types({ id: 't1', type: 'custom' }, { id: 't1', type: '' }, { id: 't1', type: 5 })).to.deep.equal([
      'custom',
    ]);
  });

  it('takes an index that is no whole number for none', () => {
    for (const index of ['0', 0.5, NaN]) {
      const pieces = ['f', 'g'].map((name) => ({ index, function: { name, arguments: '{}' } }));
      expect(callsOf(...pieces), String(index)).to.deep.equal([
        [undefined, 'f', '{}'],
        [undefined, 'g', '{}'],
      ]);
    }
  });

  it('takes arguments that are null for none', () => {
    for (const body of [
      { name: 'f', arguments: null },
      { name: 'f', input: null },
    ]) {
      expect(callsOf({ id: 't1', function: body })).to.deep.equal([['t1', 'f', '']]);
    }
  });

  it('opens a call for an id, though one without an id and an index came before', () => {
    expect(
      callsOf({ function: { name: 'f', arguments: '{}' } }, { id: 't2', function: { name: 'g', arguments: '{}' } }),
    ).to.deep.equal([
      [undefined, 'f', '{}'],
      ['t2', 'g', '{}'],
    ]);
  });

  describe('with a piece that names neither its index nor its id', () => {
    it('opens the first call', () => {
      expect(callsOf({ function: { arguments: '{' } })).to.deep.equal([[undefined, '', '{']]);
    });

    it('names the only open call, if that has no name yet', () => {
      expect(callsOf({ id: 't1' }, { function: { name: 'f', arguments: '{' } })).to.deep.equal([['t1', 'f', '{']]);
    });

    it('opens a call for a name while the open one has its own, or several are open', () => {
      expect(callsOf({ id: 't1', function: { name: 'f' } }, { function: { name: 'g' } })).to.deep.equal([
        ['t1', 'f', ''],
        [undefined, 'g', ''],
      ]);
      expect(callsOf({ id: 't1' }, { id: 't2' }, { function: { name: 'g' } })).to.deep.equal([
        ['t1', '', ''],
        ['t2', '', ''],
        [undefined, 'g', ''],
      ]);
    });

    it('continues the only call, though its arguments look whole', () => {
      expect(callsOf({ id: 't1', function: { arguments: '{}' } }, { function: { arguments: '\n' } })).to.deep.equal([
        ['t1', '', '{}\n'],
      ]);
    });

    it('continues the only call whose arguments are no whole object', () => {
      const whole = { id: 't1', function: { arguments: '{}' } };
      for (const args of ['{"a":{"b":1}', '1', '']) {
        expect(
          callsOf(whole, { id: 't2', function: { arguments: args } }, { function: { arguments: '}' } }),
        ).to.deep.equal([
          ['t1', '', '{}'],
          ['t2', '', `${args}}`],
        ]);
      }
    });

    it('refuses where all of several calls are whole', () => {
      const builder = build({ id: 't1', function: { arguments: '{}' } }, { id: 't2', function: { arguments: '{}' } });
      expect(() => builder.add({ function: { arguments: ' ' } }))
        .to.throw('a piece of a tool call names neither its index nor its id')
        .with.property('code', 'upstream_body_invalid');
    });
  });

  it('opens a call that is first heard of when it is complete', () => {
    const builder = new ToolCallBuilder();
    expect(builder.complete('t1', '{"a":1}')).to.equal(true);
    expect(builder.snapshot()).to.deep.equal([
      { index: 0, id: 't1', type: 'function', name: '', arguments: '{"a":1}' },
    ]);
    expect([builder.has('t1'), builder.has('t2')]).to.deep.equal([true, false]);
    expect(builder.complete('t1', '{"a":1}')).to.equal(false);
  });

  it('takes from an end nothing that it does not repeat, and an object for the text that it stands for', () => {
    const builder = build({ id: 't1', function: { arguments: '{' } });
    for (const args of ['', undefined, null, 5]) {
      expect([builder.complete('t1', args), builder.complete('t2', args)], String(args)).to.deep.equal([false, false]);
    }
    expect(builder.snapshot().map((call) => call.arguments)).to.deep.equal(['{']);
    expect(builder.complete('t1', { a: 1 })).to.equal(true);
    expect(builder.snapshot().map((call) => call.arguments)).to.deep.equal(['{"a":1}']);
  });
});

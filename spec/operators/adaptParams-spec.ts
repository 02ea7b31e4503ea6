import { expect } from 'chai';
import { adaptParams } from '../../lib/operators/adaptParams.ts';

describe('adaptParams', () => {
  const request: Readonly<
    Record<'max_tokens' | 'temperature', number> & { model: string; parallel_tool_calls: boolean }
  > = Object.freeze({ model: 'm2', max_tokens: 50, temperature: 0, parallel_tool_calls: true });

  it('returns the request as it is without an adaptation', () => {
    expect(adaptParams(request, undefined)).to.equal(request);
    expect(adaptParams(request, {})).to.equal(request);
    expect(adaptParams(request, { omit: [], rename: {}, set: {} })).to.equal(request);
  });

  it('leaves out what the model does not know', () => {
    expect(adaptParams(request, { omit: ['temperature', 'parallel_tool_calls', 'absent'] })).to.deep.equal({
      model: 'm2',
      max_tokens: 50,
    });
  });

  it('renames, and lets a new name that is given already stand', () => {
    const rename = { max_tokens: 'max_completion_tokens' };
    expect(adaptParams({ max_tokens: 50 }, { rename })).to.deep.equal({ max_completion_tokens: 50 });
    const both = { max_tokens: 50, max_completion_tokens: 60 };
    expect(adaptParams(both, { rename })).to.deep.equal({ max_completion_tokens: 60 });
    const reversed = { max_completion_tokens: 60, max_tokens: 50 };
    expect(adaptParams(reversed, { rename })).to.deep.equal({ max_completion_tokens: 60 });
    expect(adaptParams({ a: 1, b: 2 }, { rename: { a: 'b', b: 'a' } })).to.deep.equal({ a: 2, b: 1 });
    expect(adaptParams({ a: 1 }, { rename: { a: 'a', absent: 'b' } })).to.deep.equal({ a: 1 });
  });

  it('sets, whatever the request says', () => {
    expect(adaptParams({ temperature: 0 }, { set: { temperature: 1, seed: 7 } })).to.deep.equal({
      temperature: 1,
      seed: 7,
    });
  });

  it('omits before it renames, and sets last', () => {
    const rules = { omit: ['max_completion_tokens'], rename: { max_tokens: 'max_completion_tokens' }, set: { n: 1 } };
    expect(adaptParams({ max_tokens: 50, max_completion_tokens: 60 }, rules)).to.deep.equal({
      max_completion_tokens: 50,
      n: 1,
    });
  });

  it('takes a function', () => {
    const adapted = adaptParams(request, ({ max_tokens, ...rest }) => ({ ...rest, max_tokens: max_tokens * 2 }));
    expect(adapted.max_tokens).to.equal(100);
    expect(request.max_tokens).to.equal(50);
  });

  it('cannot be made to change a prototype', () => {
    const adapted = adaptParams({ a: 1 }, { rename: { a: '__proto__' } });
    expect(Object.getPrototypeOf(adapted)).to.equal(Object.prototype);
    expect(Object.keys(adapted)).to.deep.equal(['__proto__']);
  });
});

import { expect } from 'chai';
import { isSluiceError } from '../../lib/core/errors.ts';
import { validateChatRequest, validateResponseRequest } from '../../lib/wire/request.ts';

function messageOf(work: () => void): string | undefined {
  try {
    work();
  } catch (error) {
    return isSluiceError(error) && error.code === 'invalid_request' ? error.message : String(error);
  }
  return undefined;
}

const CHAT = { model: 'm', messages: [{ role: 'user', content: 'secret' }] };

describe('validateChatRequest', () => {
  const fault = (request: unknown, stream = true): string | undefined =>
    messageOf(() => validateChatRequest(request, stream));

  it('accepts what a provider could answer', () => {
    for (const more of [{}, { stream: true }, { n: 1 }, { n: 2 }, { n: null }, { stream: null }])
      expect(fault({ ...CHAT, ...more })).to.equal(undefined);
    expect(fault({ ...CHAT, stream: false }, false)).to.equal(undefined);
  });

  it('names the field, the rule and the value of what none could', () => {
    const rows: readonly (readonly [unknown, string])[] = [
      [undefined, 'request must be an object, got undefined'],
      [[CHAT], 'request must be an object, got an array of 1'],
      [{ ...CHAT, model: undefined }, 'model must be a string that is not empty, got undefined'],
      [{ ...CHAT, model: ' ' }, 'model must be a string that is not empty, got a string of 1 characters'],
      [{ ...CHAT, messages: [] }, 'messages must be an array that is not empty, got an array of 0'],
      [{ ...CHAT, messages: 'secret' }, 'messages must be an array that is not empty, got a string of 6 characters'],
      [{ ...CHAT, messages: [CHAT, 'secret'] }, 'messages[1] must be an object, got a string of 6 characters'],
      [{ ...CHAT, messages: [null] }, 'messages[0] must be an object, got null'],
      [{ ...CHAT, stream: false }, 'stream must be absent or true, got false'],
      [{ ...CHAT, n: 0 }, 'n must be a whole number of at least 1, got 0'],
      [{ ...CHAT, n: 1.5 }, 'n must be a whole number of at least 1, got 1.5'],
    ];
    for (const [request, message] of rows) expect(fault(request)).to.equal(message);
    expect(fault({ ...CHAT, stream: true }, false)).to.equal('stream must be absent or false, got true');
  });
});

describe('validateResponseRequest', () => {
  const fault = (request: unknown, stream = true): string | undefined =>
    messageOf(() => validateResponseRequest(request, stream));

  it('accepts text, items, and a stored prompt or conversation in place of them', () => {
    for (const request of [
      { model: 'm', input: 'x' },
      { model: 'm', input: [{}] },
      { model: 'm', prompt: { id: 'p' } },
      { prompt: { id: 'p' } },
      { prompt: 'p', input: null },
      { model: 'm', conversation: 'c' },
      { model: 'm', previous_response_id: 'r' },
    ]) {
      expect(fault(request), JSON.stringify(request)).to.equal(undefined);
    }
  });

  it('names what no provider could answer', () => {
    expect(fault({ model: 'm' })).to.equal('input must be text or an array that is not empty, got undefined');
    expect(fault({ model: 'm', input: '' })).to.equal(
      'input must be text or an array that is not empty, got an empty string',
    );
    expect(fault({ model: 'm', input: [] })).to.equal(
      'input must be text or an array that is not empty, got an array of 0',
    );
    expect(fault({ input: 'x' })).to.equal('model must be a string that is not empty, got undefined');
    expect(fault({ model: 'm', input: 'x', stream: false })).to.equal('stream must be absent or true, got false');
    expect(fault(null)).to.equal('request must be an object, got null');
    expect(fault({ prompt: 'p', model: 5 })).to.equal('model must be a string that is not empty, got 5');
    for (const none of ['', null, 5]) {
      for (const instead of ['prompt', 'conversation', 'previous_response_id']) {
        expect(fault({ model: 'm', [instead]: none }), instead).to.match(/^input must be text/);
      }
      expect(fault({ prompt: none, input: 'x' })).to.match(/^model must be a string/);
    }
  });
});

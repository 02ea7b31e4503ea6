import { expect } from 'chai';
import { withAssistantPrefix } from '../../lib/operators/withAssistantPrefix.ts';
import { partial, thrown } from '../helpers/scripted.ts';

describe('withAssistantPrefix', () => {
  const prefix = { role: 'assistant', content: 'Once upon' };
  const user = { role: 'user', content: 'Tell me' };

  it('adds the text to the messages of a chat request, and leaves that alone', () => {
    const request = { model: 'm1', messages: Object.freeze([user]) };
    expect(withAssistantPrefix(request, partial('Once upon'))).to.deep.equal({ model: 'm1', messages: [user, prefix] });
    expect(request.messages).to.have.length(1);
  });

  it('adds the text to the input of the Responses API, a list or a text', () => {
    expect(withAssistantPrefix({ input: [user] }, partial('Once upon'))).to.deep.equal({ input: [user, prefix] });
    expect(withAssistantPrefix({ input: 'Tell me' }, partial('Once upon'))).to.deep.equal({ input: [user, prefix] });
  });

  it('refuses a request that has neither', () => {
    expect(thrown(() => withAssistantPrefix({ model: 'm1' }, partial('x')))).to.include({
      code: 'invalid_request',
      message: 'messages must be a list of messages, or input a text or a list, got undefined',
    });
  });
});

import { expect } from 'chai';
import { forEachOpenAI, openaiVersions } from './openaiVersions.ts';

describe('openaiVersions', () => {
  it('starts with the SDK that the root package pins', () => {
    expect(openaiVersions[0]?.name).to.match(/^openai 7\./);
  });

  forEachOpenAI(({ name, OpenAI }) => {
    it('is the version that it says', () => {
      const client = new OpenAI({ apiKey: 'k', baseURL: 'http://127.0.0.1:9' }) as unknown as {
        getUserAgent(): string;
      };
      expect(`openai ${client.getUserAgent().split(' ').at(-1)}`).to.equal(name);
    });
  });
});

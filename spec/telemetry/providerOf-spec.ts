import { expect } from 'chai';
import { providerOf } from '../../lib/telemetry/providerOf.ts';

describe('providerOf', () => {
  for (const [host, provider] of [
    ['api.openai.com', 'openai'],
    ['my-team.openai.azure.com', 'azure.ai.openai'],
    ['api.deepseek.com', 'deepseek'],
    ['api.groq.com', 'groq'],
    ['bedrock-runtime.eu-west-1.amazonaws.com', 'aws.bedrock'],
    ['evil-api.deepseek.com.example', 'openai'],
    ['gateway.internal', 'openai'],
  ] as const) {
    it(`takes ${host} for ${provider}`, () => {
      expect(providerOf(undefined, { host, port: 443 }, 'm')).to.equal(provider);
    });
  }

  it('believes the option, as far as it says something', () => {
    const server = { host: 'api.groq.com', port: 443 };
    expect(providerOf('own', server, 'm')).to.equal('own');
    expect(providerOf((at, model) => `${at?.host} ${model}`, server, 'm')).to.equal('api.groq.com m');
    expect(providerOf(() => undefined, server, 'm')).to.equal('groq');
    expect(providerOf(undefined, undefined, undefined)).to.equal('openai');
  });
});

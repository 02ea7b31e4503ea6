import { expect } from 'chai';
import { parse } from 'yaml';
import { parsePolicy } from '../../lib/policy/parsePolicy.ts';
import { policyText } from '../../lib/policy/policyText.ts';
import { commentLines, policyYaml } from '../../lib/policy/policyYaml.ts';

describe('policyYaml', () => {
  const policy = {
    deadlineMs: 4000,
    quota: { account: { requestsPerMinute: 600, burstRequests: 8 } },
    models: { default: {}, 'gpt-5.5': { deployments: [{ client: 'a' }, { client: 'b' }], fallback: ['c'] }, c: {} },
    tenants: { 'a b': { maxInFlight: Infinity } },
  };

  it('reads as the same policy again', () => {
    const text = policyYaml(policy, []);
    expect(parsePolicy(policyText(text, 'yaml').value)).to.deep.equal(parsePolicy(policy));
    expect(text).to.not.contain('#');
  });

  it('puts comments above what they are about, wherever that is', () => {
    const text = policyYaml(policy, [
      { path: ['deadlineMs'], text: 'First.' },
      { path: ['quota', 'account', 'requestsPerMinute'], text: 'Second.' },
      { path: ['models', 'gpt-5.5', 'deployments'], text: 'Third.' },
      { path: ['models', 'gpt-5.5', 'deployments', 1], text: 'Fourth.' },
      { path: ['nowhere', 'at', 'all'], text: 'Never.' },
    ]);
    expect(text).to.match(/^# First\.\ndeadlineMs: 4000\n/);
    expect(text).to.contain('    # Second.\n    requestsPerMinute: 600\n');
    expect(text).to.contain('    # Third.\n    deployments:\n');
    expect(text).to.match(/# Fourth\.\n +- client: b|- # Fourth\.\n +client: b/);
    expect(text).to.not.contain('Never');
    expect(parsePolicy(parse(text))).to.deep.equal(parsePolicy(policy));
  });

  it('prints no keys and addresses, but the names of variables, and says what is missing', () => {
    const secret = {
      clients: {
        main: { baseURL: 'https://example.test/v1', apiKey: 'sk-very-secret', headers: { 'x-team': 'quiet' } },
        other: { apiKey: '${OTHER_KEY}' },
      },
      gateway: { keys: ['0'.repeat(64), { hash: '1'.repeat(64), tenant: 'acme' }] },
    };
    const text = policyYaml(secret, []);
    expect(text).to.not.match(/sk-very|example|quiet|000|111/);
    expect(text).to.contain('apiKey: ${OTHER_KEY}');
    expect(text.replace(/\n#/g, '')).to.match(
      /Not printed: clients\.main\.baseURL, clients\.main\.apiKey, clients\.main\.headers\.x-team, gateway\.keys/,
    );
    expect(() => parsePolicy(parse(text))).to.not.throw();
  });

  it('breaks long comments into lines', () => {
    const lines = commentLines('word '.repeat(60).trim());
    expect(lines).to.have.length(3);
    for (const line of lines) expect(line.length).to.be.at.most(100);
    expect(lines.join(' ')).to.equal('word '.repeat(60).trim());
  });
});

import { expect } from 'chai';
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { explain } from '../../lib/policy/explain.ts';
import { loadPolicy } from '../../lib/policy/loadPolicy.ts';
import { policyWarnings } from '../../lib/policy/policyWarnings.ts';
import { root } from '../../.ci/entryPoints.ts';

describe('examples/policies', () => {
  const files = globSync('examples/policies/*', { cwd: root });
  const env = { OPENAI_API_KEY: 'k', TEAM_A_KEY_SHA256: 'a'.repeat(64), TEAM_B_KEY_SHA256: 'b'.repeat(64) };

  it('are there', () => expect(files).to.have.length.at.least(5));

  for (const file of files) {
    it(`${file} is right and can work`, () => {
      const policy = loadPolicy(join(root, file), { env });
      expect(policyWarnings(policy)).to.deep.equal([]);
      expect(explain(policy)).to.include('A call passes');
    });
  }
});

describe('docs/guide/policy.md', () => {
  const page = readFileSync(join(root, 'docs/guide/policy.md'), 'utf8');
  const blocks = [...page.matchAll(/^```yaml\n(.*?)^```/gms)].map(([, text = '']) => text);

  it('has policies', () => expect(blocks).to.have.length.above(8));

  for (const [i, text] of blocks.entries()) {
    it(`writes policies that are right: ${i + 1}`, () => {
      const folder = mkdtempSync(join(tmpdir(), 'sluice-guide-'));
      try {
        writeFileSync(join(folder, 'policy.yaml'), text);
        loadPolicy(join(folder, 'policy.yaml'), { env: { OPENAI_API_KEY: 'k', GATEWAY_KEY_HASH: 'c'.repeat(64) } });
      } finally {
        rmSync(folder, { recursive: true });
      }
    });
  }
});

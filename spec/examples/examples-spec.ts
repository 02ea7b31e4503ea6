import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect } from 'chai';

const root = join(import.meta.dirname, '../..');

describe('examples/', () => {
  const files = globSync('examples/*.ts', { cwd: root }).sort();

  it('lists every example, says in its first line what it shows, and has a spec that runs it', () => {
    const page = readFileSync(join(root, 'examples/README.md'), 'utf8');
    expect(files).to.have.length.above(0);
    for (const file of files) {
      const name = basename(file, '.ts');
      expect(page, file).to.contain(`](${name}.ts)`);
      expect(readFileSync(join(root, file), 'utf8').split('\n')[0], file).to.match(/^\/\/ [A-Z].+\.$/);
      expect(existsSync(join(root, `spec/examples/${name}-spec.ts`)), file).to.equal(true);
    }
  });
});

import { expect } from 'chai';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../.ci/entryPoints.ts';

const read = (file: string): string => readFileSync(join(root, file), 'utf8');

/** Every text file that is kept in the repository. */
function keptFiles(): readonly string[] {
  const folders = ['lib', 'spec', 'examples', 'docs', '.ci'];
  const inFolders = folders.map((folder) => `${folder}/**/*.{ts,js,mjs,cjs,json,jsonl,md,yaml,yml,lua,html,npmrc}`);
  return globSync([...inFolders, '*.{json,md,js,cjs}', '{.*rc,.*.json,.*.cjs}', '.ci/run', 'spec/*/.npmrc'], {
    cwd: root,
    exclude: (name) => /(^|\/)node_modules$/.test(name),
  });
}

describe('files', () => {
  it('name no package registry', () => {
    // Put together here, so that this file names none either.
    const hosts = [
      ['registry', 'npmjs', 'org'],
      ['registry', 'yarnpkg', 'com'],
      ['npmmirror', 'com'],
    ].map((parts) => parts.join('.'));
    const files = keptFiles();
    expect(files).to.include.members(['package.json', 'package-lock.json', '.npmrc', 'lib/index.ts', '.ci/run']);
    for (const file of files) {
      const text = read(file);
      for (const host of hosts) expect(text.includes(host), `${file} names ${host}`).to.equal(false);
      if (file.endsWith('package-lock.json')) expect(text.includes('"resolved"'), file).to.equal(false);
      if (file.endsWith('.npmrc')) expect(text, file).not.to.match(/registry\s*=\s*http|_auth/);
    }
  });

  it('of lib stay below 300 lines', () => {
    for (const file of globSync('lib/**/*.ts', { cwd: root, exclude: ['lib/index.ts', 'lib/*/index.ts'] })) {
      expect(read(file).split('\n').length, file).to.be.at.most(301);
    }
  });

  it('of spec run every test', () => {
    for (const file of globSync('spec/**/*-spec.ts', { cwd: root, exclude: (name) => name.endsWith('node_modules') })) {
      expect(read(file), file).not.to.match(/\b(?:describe|it|context)\.only\(/);
    }
  });

  it('pin every package to one version', () => {
    for (const file of ['package.json', 'spec/clients/package.json']) {
      const { dependencies = {}, devDependencies = {} } = JSON.parse(read(file)) as Record<
        string,
        Record<string, string>
      >;
      for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies })) {
        expect(version, `${name} in ${file}`).to.match(/^(npm:[^@]+@)?\d+\.\d+\.\d+$/);
      }
    }
  });
});

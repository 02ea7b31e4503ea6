import { expect } from 'chai';
import { execFileSync } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { entryPoints, root } from '../../.ci/entryPoints.ts';
import { builtDist } from '../helpers/builtDist.ts';

const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  bin: Record<string, string>;
  exports: Record<string, string | object>;
  engines: { node: string };
};

/** Imports `name` in a process of its own. Says which packages were loaded, and what the module exports. */
function load(name: string): { readonly packages: readonly string[]; readonly names: readonly string[] } {
  const code = `
    import { registerHooks } from 'node:module';
    const urls = [];
    registerHooks({ load: (url, context, next) => (urls.push(url), next(url, context)) });
    const names = Object.keys(await import(${JSON.stringify(name)}));
    const packages = urls.map((url) => /.*\\/node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(url)?.[1]);
    console.log(JSON.stringify({ names, packages: [...new Set(packages)].filter(Boolean).sort() }));
  `;
  const printed = execFileSync(process.execPath, ['--input-type=module', '-e', code], { cwd: root, encoding: 'utf8' });
  return JSON.parse(printed) as ReturnType<typeof load>;
}

describe('package', () => {
  before(function () {
    this.timeout(60_000);
    builtDist();
  });

  for (const { name, declarations, code } of entryPoints()) {
    it(`exports ${name}, which dist/ has and Node loads`, () => {
      expect(existsSync(declarations), declarations).to.equal(true);
      expect(existsSync(code), code).to.equal(true);
      const { names } = load(name);
      expect(names).to.not.include('default');
      expect(names).to.not.have.length(0);
    });
  }

  it('has a command that can be run as it stands', () => {
    const env = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}` };
    const printed = execFileSync(join(root, manifest.bin['sluice'] ?? ''), ['--help'], { env, encoding: 'utf8' });
    expect(printed).to.include('sluice <command>');
  });

  it('gives types, then the default, and no other condition', () => {
    for (const [path, target] of Object.entries(manifest.exports)) {
      if (typeof target !== 'string') expect(Object.keys(target), path).to.deep.equal(['types', 'default']);
    }
  });

  it('loads nothing but RxJS for sluice/operators', () => {
    expect(load('sluice/operators').packages).to.deep.equal(['rxjs']);
  });

  it('loads no SDK and no OpenTelemetry for sluice', () => {
    const { packages } = load('sluice');
    expect(['rxjs', 'yaml', 'zod']).to.include.members([...packages]);
  });

  it('can be loaded by require too', () => {
    const code = `console.log(typeof require('sluice').SluiceError)`;
    const printed = execFileSync(process.execPath, ['--input-type=commonjs', '-e', code], { cwd: root });
    expect(printed.toString().trim()).to.equal('function');
  });

  it('names no TypeScript file in what it publishes', () => {
    const files = globSync('dist/**/*.{js,d.ts}', { cwd: root });
    expect(files).to.not.have.length(0);
    for (const file of files) {
      expect(readFileSync(join(root, file), 'utf8'), file).not.to.match(
        /(?:from|import) ?\(?['"]\.[^'"]*(?<!\.d)\.ts['"]/,
      );
    }
  });

  it('has an executable for each name of bin', () => {
    for (const file of Object.values(manifest.bin)) {
      expect(readFileSync(join(root, file), 'utf8').split('\n')[0]).to.equal('#!/usr/bin/env node');
    }
  });

  it('checks the version of Node before an executable loads anything else', () => {
    for (const file of Object.values(manifest.bin)) {
      const text = readFileSync(join(root, file), 'utf8');
      const imports = [...text.matchAll(/^import .*?'([^']+)';$/gms)].map(([, name]) => name);
      expect(imports, 'further imports must be `await import(...)`').to.deep.equal(['./nodeFloor.cjs']);
    }
  });
});

describe('nodeFloor', () => {
  const floorFile = JSON.stringify(join(root, 'lib/cli/nodeFloor.cjs'));

  /** What a Node of that version would say. */
  function saidBy(version: string): { readonly code: number; readonly said: string } {
    const code = `
      Object.defineProperty(process.versions, 'node', { value: ${JSON.stringify(version)} });
      require(${floorFile});
    `;
    try {
      execFileSync(process.execPath, ['--input-type=commonjs', '-e', code], { stdio: 'pipe' });
      return { code: 0, said: '' };
    } catch (error) {
      const { status, stderr } = error as { status: number; stderr: Buffer };
      return { code: status, said: stderr.toString() };
    }
  }

  for (const version of ['18.20.8', '20.20.2', '22.17.1', '22.9.0']) {
    it(`ends with one sentence on Node ${version}`, () => {
      const { code, said } = saidBy(version);
      expect(code).to.equal(1);
      expect(said).to.match(/^Sluice needs Node 22\.18\.0 or newer and this is Node [\d.]+: [^\n]*\.\n$/);
      expect(said).to.include(version);
    });
  }

  for (const version of ['22.18.0', '22.23.3', '23.0.0', '24.21.0', '100.0.0']) {
    it(`says nothing on Node ${version}`, () => {
      expect(saidBy(version)).to.deep.equal({ code: 0, said: '' });
    });
  }
});

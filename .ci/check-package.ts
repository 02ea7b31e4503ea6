import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import './build.ts';
import { root } from './entryPoints.ts';
import { problemsOfPacked } from './packed.ts';

// Packs the package as it would be published, has publint and are-the-types-wrong look at it, and starts it elsewhere.

const folder = join(root, 'temp/pack');
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
const packed = execFileSync('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder], {
  cwd: root,
  encoding: 'utf8',
});
const tarball = join(folder, packed.trim());

run('publint', 'run', tarball, '--strict');
run('attw', tarball, '--profile', 'esm-only', '--no-emoji', '--format', 'ascii', '--no-definitely-typed');

const problems = await problemsOfPacked(tarball);
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exitCode = 1;
else console.log('installed elsewhere: the gateway starts, and its live page is whole');

function run(command: string, ...args: readonly string[]): void {
  const { status, stdout, stderr } = spawnSync(join(root, 'node_modules/.bin', command), args, { encoding: 'utf8' });
  if (status === 0) console.log(`${command}: nothing to say`);
  else {
    console.error(stdout + stderr);
    process.exitCode = 1;
  }
}

import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './entryPoints.ts';

// Runs each program of a folder, or those whose names are given: `node .ci/each.ts spec/prove [name ...]`.

const [folder = '', ...wanted] = process.argv.slice(2);
const programs = globSync(`${folder}/*.ts`, { cwd: root })
  .filter((file) => !file.endsWith('-spec.ts'))
  .sort();
const chosen = programs.filter((file) => wanted.length === 0 || wanted.some((name) => file.endsWith(`/${name}.ts`)));

if (chosen.length === 0) {
  console.error(`${folder} has no such program. It has: ${programs.join(', ') || 'none'}`);
  process.exitCode = 1;
}
for (const file of chosen) {
  console.log(`\n== ${file}`);
  const { status } = spawnSync(process.execPath, ['--expose-gc', join(root, file)], { cwd: root, stdio: 'inherit' });
  if (status !== 0) process.exitCode = 1;
}

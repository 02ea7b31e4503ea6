import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { GROUPS } from './groups.ts';
import { writeScores } from './writeScores.ts';

// `npm run mutate`: all groups. `npm run mutate bucket wire`: some. `npm run mutate -- --mutate 'lib/limits/Quota*.ts'`: what matches,
// each file with the specs of its group. `--write` only writes the page anew. Stryker remembers what it has tried, in `reports/mutation/`.

const root = fileURLToPath(new URL('../../', import.meta.url));
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { mutate: { type: 'string' }, write: { type: 'boolean', default: false } },
});
const unknown = positionals.filter((name) => !(name in GROUPS));
if (unknown.length > 0) {
  console.error(`There is no group ${unknown.join(', ')}. There are: ${Object.keys(GROUPS).join(', ')}`);
  process.exit(1);
}

const pattern = values.mutate;
const matching = pattern === undefined ? undefined : new Set(globSync(pattern, { cwd: root }));
if (matching?.size === 0) {
  console.error(`No file matches ${pattern}`);
  process.exit(1);
}
for (const [name, { files, specs }] of values.write ? [] : Object.entries(GROUPS)) {
  if (positionals.length > 0 && !positionals.includes(name)) continue;
  const chosen = globSync([...files], { cwd: root }).filter((file) => matching?.has(file) ?? true);
  if (chosen.length === 0) continue;
  console.log(`\n== ${name}: ${chosen.join(', ')}`);
  const config = fileURLToPath(new URL('stryker.config.mjs', import.meta.url));
  const stryker = fileURLToPath(new URL('node_modules/@stryker-mutator/core/bin/stryker.js', import.meta.url));
  const { status } = spawnSync(process.execPath, [stryker, 'run', config, '--mutate', chosen.join(',')], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, CI: '1', MUTATION_GROUP: name, MUTATION_SPECS: specs.join(',') },
  });
  if (status !== 0) process.exitCode = 1;
}
await writeScores(root);

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { root } from './entryPoints.ts';
import { linesWithoutReason } from './uncoveredLines.ts';
import type { FileCoverage } from './uncoveredLines.ts';

// Runs the specs with c8, all or those that are named, and fails where a line of these parts is reached by none of them and
// no reason stands beside it: `npm run coverage`, `npm run coverage -- 'spec/limits/*-spec.ts'`.

const PARTS = ['limits', 'wire', 'operators'] as const;
const named = process.argv.slice(2);
const specs = named.length > 0 ? named : ['spec/**/*-spec.ts'];
const bin = (name: string): string => join(root, 'node_modules', name);

const { status } = spawnSync(
  process.execPath,
  [
    ...[
      bin('c8/bin/c8.js'),
      '--include',
      'lib',
      '--reporter',
      'text-summary',
      '--reporter',
      'html',
      '--reporter',
      'json',
    ],
    ...[process.execPath, '-r', './lib/cli/nodeFloor.cjs', bin('mocha/bin/mocha.js'), ...specs],
  ],
  { cwd: root, stdio: 'inherit' },
);
if (status !== 0) process.exitCode = 1;

const report = JSON.parse(readFileSync(join(root, 'coverage/coverage-final.json'), 'utf8')) as Record<
  string,
  FileCoverage
>;
let missing = 0;
for (const [path, coverage] of Object.entries(report).sort()) {
  const file = relative(root, path);
  if (!PARTS.some((part) => file.startsWith(join('lib', part, '/')))) continue;
  for (const { from, to, why } of linesWithoutReason(coverage, readFileSync(path, 'utf8'))) {
    missing += to - from + 1;
    console.log(`${file}:${from}${to > from ? `-${to}` : ''} ${why}`);
  }
}
const where = PARTS.map((part) => `lib/${part}`).join(', ');
console.log(
  missing === 0 ? `every line of ${where} is covered, or says why not` : `${missing} lines of ${where} to cover`,
);
if (missing > 0) process.exitCode = 1;

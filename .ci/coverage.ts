import { spawnSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { writeResults } from '../spec/prove/parts/writeResults.ts';
import { root } from './entryPoints.ts';
import { hasCode, leftOut, linesWithoutReason } from './uncoveredLines.ts';
import type { FileCoverage } from './uncoveredLines.ts';

// Runs the specs with c8, all or those that are named, and fails where a line of these parts is reached by none of them and
// no reason stands beside it: `npm run coverage`, `npm run coverage -- 'spec/limits/*-spec.ts'`. A run of all that passes
// writes docs/results/coverage.md.

const PARTS = ['limits', 'wire', 'operators'] as const;
/** While it is counted what runs, specs take longer than they may otherwise. */
const TIMEOUT_MS = 120_000;
const named = process.argv.slice(2);
const specs = named.length > 0 ? named : ['spec/**/*-spec.ts'];
const bin = (name: string): string => join(root, 'node_modules', name);

const { status } = spawnSync(
  process.execPath,
  [
    bin('c8/bin/c8.js'),
    ...['--include', 'lib'],
    ...['text-summary', 'html', 'json'].flatMap((reporter) => ['--reporter', reporter]),
    ...[process.execPath, '-r', './lib/cli/nodeFloor.cjs'],
    ...[bin('mocha/bin/mocha.js'), '--timeout', String(TIMEOUT_MS), ...specs],
  ],
  { cwd: root, stdio: 'inherit' },
);
const passed = status === 0;
if (!passed) process.exitCode = 1;

const report = JSON.parse(readFileSync(join(root, 'coverage/coverage-final.json'), 'utf8')) as Record<
  string,
  FileCoverage
>;
const reports = new Map(Object.entries(report).map(([path, coverage]) => [relative(root, path), coverage]));
const sums = new Map<string, { files: number; lines: number; reached: number; leftOut: number }>();
let missing = 0;
for (const file of globSync('lib/**/*.ts', { cwd: root }).sort()) {
  const source = readFileSync(join(root, file), 'utf8');
  const coverage = reports.get(file);
  if (coverage === undefined && !hasCode(source)) continue;
  const counts = Object.values(coverage?.s ?? {});
  const part = file.split('/').length > 2 ? file.split('/').slice(0, 2).join('/') : 'lib';
  const sum = sums.get(part) ?? { files: 0, lines: 0, reached: 0, leftOut: 0 };
  sums.set(part, sum);
  sum.files++;
  sum.lines += coverage ? counts.length : source.split('\n').length;
  sum.reached += counts.filter((count) => count > 0).length;
  sum.leftOut += leftOut(source);
  if (!PARTS.some((strict) => part === `lib/${strict}`)) continue;
  if (coverage === undefined) {
    missing++;
    console.log(`${file} is loaded by no spec`);
    continue;
  }
  for (const { from, to, why } of linesWithoutReason(coverage, source)) {
    missing += to - from + 1;
    console.log(`${file}:${from}${to > from ? `-${to}` : ''} ${why}`);
  }
}
const where = PARTS.map((part) => `lib/${part}`).join(', ');
console.log(
  missing === 0 ? `every line of ${where} is covered, or says why not` : `${missing} lines of ${where} to cover`,
);
if (missing > 0) process.exitCode = 1;

if (named.length === 0) {
  await writeResults({
    name: 'coverage',
    title: 'Lines that the specs reach',
    text: `
All specs with c8, by part of the library. _Lines_ are those of the files that have something to run, comments among them.
_Left out_ are places that nothing can reach, each with its reason beside it; they count as reached. What is done
wrongly in a line that is reached is for [the mutants](mutation.md). Specs that start programs of their own count too.`,
    command: 'npm run coverage',
    rows: [
      ['part', 'files', 'lines', 'reached', 'left out'],
      ...[...sums].map(([part, sum]) => [
        part,
        sum.files,
        sum.lines,
        `${(Math.floor((1000 * sum.reached) / sum.lines) / 10).toFixed(1)} %`,
        sum.leftOut,
      ]),
    ],
    claims: [
      ['all specs pass', passed],
      [`every line of ${where} is reached, or says why not`, missing === 0],
    ],
  });
}

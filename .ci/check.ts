import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './entryPoints.ts';

// Runs every `check:*` script of package.json, also after one has failed, and says which did.

const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: Record<string, string> };
const names = Object.keys(scripts).filter((name) => name.startsWith('check:'));
const failed: string[] = [];

for (const name of names) {
  const startedAt = performance.now();
  const { code, output } = await run(name);
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  console.log(`${code === 0 ? 'ok    ' : 'FAILED'} ${name} (${seconds} s)`);
  if (code === 0) continue;
  failed.push(name);
  console.log(output.trimEnd());
}

console.log(failed.length === 0 ? `${names.length} checks passed` : `failed: ${failed.join(', ')}`);
if (process.env['COUNTS_FILE'] !== undefined) {
  writeFileSync(
    process.env['COUNTS_FILE'],
    JSON.stringify({ passed: names.length - failed.length, failed: failed.length }),
  );
}
if (failed.length > 0) process.exitCode = 1;

function run(script: string): Promise<{ readonly code: number | null; readonly output: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn('npm', ['run', '--silent', script], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text));
    child.on('error', reject);
    child.on('close', (code) => {
      resolve({ code, output });
    });
  });
}

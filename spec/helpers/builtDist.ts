import { execFileSync } from 'node:child_process';
import { globSync, statSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../..');

/** Path of dist/, built anew if lib/ has changed since. For specs that use the package as its users do. */
export function builtDist(): string {
  const builtAtMs = modifiedAtMs('dist/index.js');
  const stale = globSync(['lib/**/*', '.ci/build.ts', '.ci/tsconfig.build.json', 'tsconfig.json'], { cwd: root }).some(
    (file) => modifiedAtMs(file) > builtAtMs,
  );
  if (stale) execFileSync(process.execPath, [join(root, '.ci/build.ts')], { stdio: 'inherit' });
  return join(root, 'dist');
}

function modifiedAtMs(file: string): number {
  return statSync(join(root, file), { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

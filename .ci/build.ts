import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

// Writes dist/, also where this is imported for that. Types are not checked here (`npm run check:types` does): installing must be quick and must not depend on
// it. With isolatedDeclarations the declarations come out whole all the same.

const root = dirname(import.meta.dirname);
const dist = join(root, 'dist');
const tsc = typescriptCompiler();

if (tsc === undefined) {
  if (!existsSync(join(dist, 'index.js'))) {
    console.error('dist/ cannot be built without the development dependencies: run `npm ci` without --omit=dev.');
    process.exit(1);
  }
} else {
  mkdirSync(join(root, 'temp'), { recursive: true });
  // Built aside and then put in place, so that a process that runs from dist/ never sees half of it.
  const fresh = mkdtempSync(join(root, 'temp/dist-'));
  const { status } = spawnSync(
    process.execPath,
    [tsc, '-p', join(root, '.ci/tsconfig.build.json'), '--outDir', fresh],
    { stdio: 'inherit' },
  );
  if (status !== 0) {
    rmSync(fresh, { recursive: true });
    process.exit(1);
  }
  for (const file of globSync('**/*.d.ts', { cwd: fresh })) renameImports(join(fresh, file));
  for (const file of globSync('**/*.{lua,html,css,svg,js,cjs}', { cwd: join(root, 'lib') })) {
    cpSync(join(root, 'lib', file), join(fresh, file));
  }
  // What installs the package does this too; `npx sluice` in a checkout runs the file as it stands.
  const command = join(fresh, 'cli/main.js');
  if (existsSync(command)) chmodSync(command, 0o755);
  rmSync(dist, { recursive: true, force: true });
  renameSync(fresh, dist);
}

function typescriptCompiler(): string | undefined {
  try {
    return createRequire(import.meta.url).resolve('typescript/bin/tsc');
  } catch {
    return undefined;
  }
}

/** The compiler rewrites `.ts` to `.js` in code, but not in declarations. */
function renameImports(file: string): void {
  const text = readFileSync(file, 'utf8');
  writeFileSync(file, text.replace(/((?:from|import) ?\(?')(\.{1,2}\/[^']*)\.ts'/g, "$1$2.js'"));
}

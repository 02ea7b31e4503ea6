import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { root } from './entryPoints.ts';

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta: Readonly<Record<string, { readonly optional?: boolean }>>;
}

/**
 * Puts the packed package into a place of its own, next to nothing but what it says it needs, starts the gateway there and
 * asks for the live page. Returns what is wrong.
 */
export async function problemsOfPacked(tarball: string): Promise<readonly string[]> {
  const place = mkdtempSync(join(tmpdir(), 'sluice-packed-'));
  try {
    const installed = join(place, 'node_modules/sluice');
    mkdirSync(installed, { recursive: true });
    execFileSync('tar', ['-xzf', tarball, '-C', installed, '--strip-components=1']);
    for (const name of neededBy(join(installed, 'package.json'))) {
      const link = join(place, 'node_modules', name);
      mkdirSync(dirname(link), { recursive: true });
      symlinkSync(join(root, 'node_modules', name), link);
    }
    return await problemsOfPage(join(installed, 'dist/cli/main.js'), place);
  } finally {
    rmSync(place, { recursive: true });
  }
}

function neededBy(manifest: string): readonly string[] {
  const { dependencies, peerDependencies, peerDependenciesMeta } = JSON.parse(
    readFileSync(manifest, 'utf8'),
  ) as Manifest;
  const peers = Object.keys(peerDependencies).filter((name) => peerDependenciesMeta[name]?.optional !== true);
  return [...Object.keys(dependencies), ...peers];
}

async function problemsOfPage(command: string, cwd: string): Promise<readonly string[]> {
  // Nobody is asked: there is only the page to be seen.
  const flags = ['serve', '--base-url', 'http://127.0.0.1:9/v1', '--port', '0', '--json'];
  const child = spawn(process.execPath, [command, ...flags], { cwd, stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit') as Promise<[number | null]>;
  try {
    const first = await Promise.race([once(child.stdout, 'data'), exited.then(() => undefined)]);
    if (first === undefined) return ['the packed `sluice serve` did not start'];
    const { url } = JSON.parse(String(first[0])) as { readonly url: string };
    const folder = join(root, 'lib/http/live/page');
    const own = readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')] as const);
    const problems: string[] = [];
    for (const [name, text] of [...own, ['uplot.js', undefined] as const, ['uplot.css', undefined] as const]) {
      const path = name === 'index.html' ? '/' : `/${name}`;
      const response = await fetch(url + path);
      const body = await response.text();
      if (response.status !== 200 || body === '' || (text !== undefined && body !== text)) {
        problems.push(`the packed live page does not give ${path} as it is here: ${response.status}`);
      }
    }
    return problems;
  } finally {
    child.kill('SIGTERM');
    await exited;
  }
}

import { execFile } from 'node:child_process';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../..');

/** What `examples/<name>.ts` prints, run as its readers run it. Rejects unless it ends by itself with exit code 0. */
export function runExample(name: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  // Keys of whoever runs the tests must be of no use to it.
  const { OPENAI_API_KEY: _key, OPENAI_BASE_URL: _url, ...inherited } = process.env;
  return new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      [join(root, 'examples', `${name}.ts`)],
      { cwd: root, env: { ...inherited, ...env }, timeout: 50_000 },
      (error, stdout, stderr) => {
        if (error === null && stderr === '') resolve(stdout);
        else reject(new Error(`examples/${name}.ts: ${error?.message ?? 'complains'}\n${stdout}\n${stderr}`));
      },
    );
  });
}

import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export const root: string = dirname(import.meta.dirname);

export interface EntryPoint {
  /** As users import it: `sluice/operators`. */
  readonly name: string;
  /** Absolute paths. */
  readonly source: string;
  readonly declarations: string;
  readonly code: string;
}

/** The entries of the `exports` map that hold code. */
export function entryPoints(): readonly EntryPoint[] {
  const { name, exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    name: string;
    exports: Record<string, string | { types: string; default: string }>;
  };
  return Object.entries(exports).flatMap(([path, target]) => {
    if (typeof target === 'string') return [];
    return {
      name: name + path.slice(1),
      source: join(root, target.default.replace('./dist/', 'lib/').replace(/\.js$/, '.ts')),
      declarations: join(root, target.types),
      code: join(root, target.default),
    };
  });
}

import fc from 'fast-check';
import { enableCompileCache, flushCompileCache } from 'node:module';
import { join } from 'node:path';

// What CI says of a change must not depend on luck. Everywhere else each run tries other cases; a failing one prints its seed.
if (process.env['CI'] !== undefined) fc.configureGlobal({ seed: 20_261_129 });

// Workers and children load the same files again and again: they keep what was compiled. Coverage would be less exact with it.
const keepsCompiled = process.env['NODE_V8_COVERAGE'] === undefined;
if (keepsCompiled) {
  process.env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, '../../node_modules/.cache/node');
  enableCompileCache(process.env['NODE_COMPILE_CACHE']);
}

/** Rejections nobody handles fail the run, whichever test they come from. */
const unhandled: unknown[] = [];
process.on('unhandledRejection', (reason) => unhandled.push(reason));

export const mochaHooks = {
  afterEach(): void {
    const [reason] = unhandled.splice(0);
    if (reason !== undefined) throw new Error('a promise was rejected and nobody handled it', { cause: reason });
  },
  afterAll(): void {
    if (keepsCompiled) flushCompileCache();
  },
};

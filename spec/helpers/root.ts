import fc from 'fast-check';

// What CI says of a change must not depend on luck. Everywhere else each run tries other cases; a failing one prints its seed.
if (process.env['CI'] !== undefined) fc.configureGlobal({ seed: 20_261_129 });

/** Rejections nobody handles fail the run, whichever test they come from. */
const unhandled: unknown[] = [];
process.on('unhandledRejection', (reason) => unhandled.push(reason));

export const mochaHooks = {
  afterEach(): void {
    const [reason] = unhandled.splice(0);
    if (reason !== undefined) throw new Error('a promise was rejected and nobody handled it', { cause: reason });
  },
};

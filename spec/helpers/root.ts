/** Rejections nobody handles fail the run, whichever test they come from. */
const unhandled: unknown[] = [];
process.on('unhandledRejection', (reason) => unhandled.push(reason));

export const mochaHooks = {
  afterEach(): void {
    const [reason] = unhandled.splice(0);
    if (reason !== undefined) throw new Error('a promise was rejected and nobody handled it', { cause: reason });
  },
};

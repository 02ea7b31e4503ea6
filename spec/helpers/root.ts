const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 22 || (major === 22 && minor < 18)) {
  console.error(
    `The tests need Node 22.18 or newer, and this is ${process.versions.node}. ` +
      'Run `npm ci` and then `npm test`, which uses the Node that the package brings.',
  );
  process.exit(1);
}

/** Rejections nobody handles fail the run, whichever test they come from. */
const unhandled: unknown[] = [];
process.on('unhandledRejection', (reason) => unhandled.push(reason));

export const mochaHooks = {
  afterEach(): void {
    const [reason] = unhandled.splice(0);
    if (reason !== undefined) throw new Error('a promise was rejected and nobody handled it', { cause: reason });
  },
};

const EVERY_MS = 1_000;
/** Where nobody looks at a terminal, a line stays. */
const LINE_EVERY_MS = 10_000;

/** Shows while `work` runs how far it has come. */
export async function withLiveLine<T>(text: () => string, work: () => Promise<T>): Promise<T> {
  const { stdout } = process;
  const startMs = performance.now();
  const show = (): void => {
    const line = `${((performance.now() - startMs) / 1_000).toFixed(0)} s: ${text()}`;
    stdout.write(stdout.isTTY ? `\r\u001b[2K${line}` : `${line}\n`);
  };
  const timer = setInterval(show, stdout.isTTY ? EVERY_MS : LINE_EVERY_MS);
  try {
    return await work();
  } finally {
    clearInterval(timer);
    if (stdout.isTTY) stdout.write('\r\u001b[2K');
  }
}

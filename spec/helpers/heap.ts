import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose_gc');
const collect = runInNewContext('gc') as () => void;

/** Bytes of the heap that are in use when all that can be collected has been. */
export async function heapInUse(): Promise<number> {
  // A target of a WeakRef lives at least until the end of the tick in which it was made.
  await new Promise((resolve) => setImmediate(resolve));
  collect();
  return process.memoryUsage().heapUsed;
}

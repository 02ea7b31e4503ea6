import { SluiceError } from '../core/errors.ts';

/**
 * Loads a package that is needed by `startTelemetry` only.
 *
 * @throws SluiceError `invalid_option` that says what to install, where `name` or something that it needs is not there.
 */
export async function loadPeer<T>(name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    if (!isMissing(error)) throw error;
    throw new SluiceError('invalid_option', `startTelemetry needs a package that is not there: npm install ${name}`);
  }
}

function isMissing(error: unknown): boolean {
  const code = (error as { readonly code?: unknown } | null)?.code;
  return code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND';
}

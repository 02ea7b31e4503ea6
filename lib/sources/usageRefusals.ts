import type { SluiceError } from '../core/errors.ts';
import { answerOf } from './classifyFailure.ts';

const refusing = new WeakSet<object>();

/** Whether the provider has refused to be asked for usage. */
export function refusesUsage(provider: object | undefined): boolean {
  return provider !== undefined && refusing.has(provider);
}

export function rememberRefusal(provider: object | undefined): void {
  if (provider !== undefined) refusing.add(provider);
}

/** Whether a request was refused for the field that asks for usage, as far as its answer tells. */
export function isUsageRefusal(error: SluiceError): boolean {
  const { code, message } = error;
  if (code !== 'bad_request') return false;
  return /stream[ _-]?options|include[ _-]?usage/i.test(`${message} ${answerOf(error)?.body ?? ''}`);
}

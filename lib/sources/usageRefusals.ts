import type { SluiceError } from '../core/errors.ts';
import { answerOf } from './classifyFailure.ts';

/** Most endpoints that are remembered; the oldest is forgotten, which costs one request. */
const MOST = 1_000;

const refusing = new Set<string>();

/** Whether the endpoint has refused to be asked for usage, in this process. */
export function refusesUsage(endpoint: string | undefined): boolean {
  return endpoint !== undefined && refusing.has(endpoint);
}

export function rememberRefusal(endpoint: string | undefined): void {
  if (endpoint === undefined) return;
  const [oldest] = refusing.size >= MOST ? refusing : [];
  if (oldest !== undefined) refusing.delete(oldest);
  refusing.add(endpoint);
}

/** Whether a request was refused for the field that asks for usage, as far as its answer tells. */
export function isUsageRefusal(error: SluiceError): boolean {
  const { code, message } = error;
  if (code !== 'bad_request') return false;
  return /stream[ _-]?options|include[ _-]?usage/i.test(`${message} ${answerOf(error)?.body ?? ''}`);
}

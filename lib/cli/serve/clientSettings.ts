import type { HttpSourceOptions } from '../../http/transport/HttpSourceOptions.ts';
import type { Policy } from '../../policy/Policy.ts';
import { wrongFlag } from '../flags.ts';

const OPENAI = 'https://api.openai.com/v1';

/** By the names that the policy has for them. */
export type ClientSettings = Readonly<Record<string, HttpSourceOptions>>;

/** What clients are made from besides the policy. */
export interface ClientSurroundings {
  readonly baseURL: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/**
 * The clients that the policy names; or else one, `main`, as the environment has it for OpenAI's own SDKs.
 *
 * @throws SluiceError `invalid_option`
 */
export function clientSettings({ clients }: Policy, { baseURL: given, env }: ClientSurroundings): ClientSettings {
  const named = Object.entries(clients);
  if (named.length > 0) {
    if (given !== undefined) throw wrongFlag('--base-url is of no use: the policy names its clients');
    return Object.fromEntries(
      named.map(([name, { baseURL = OPENAI, apiKey, headers }]) => [name, { baseURL, apiKey, headers }]),
    );
  }
  const baseURL = given ?? (env['OPENAI_BASE_URL'] || OPENAI);
  const apiKey = env['OPENAI_API_KEY'] || undefined;
  if (baseURL === OPENAI && apiKey === undefined) {
    throw wrongFlag('there is nobody to ask: set OPENAI_API_KEY, or name clients in the policy');
  }
  return { main: { baseURL, apiKey } };
}

import { httpSource } from '../../http/transport/httpSource.ts';
import type { HttpSource } from '../../http/transport/httpSource.ts';
import type { Policy } from '../../policy/Policy.ts';
import { wrongFlag } from '../flags.ts';

const OPENAI = 'https://api.openai.com/v1';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The clients that the policy names; or else one, `main`, as the environment has it for OpenAI's own SDKs.
 *
 * @throws SluiceError `invalid_option`
 */
export function serveClients(
  { clients }: Policy,
  { baseURL: given, env }: { readonly baseURL: string | undefined; readonly env: Environment },
): Readonly<Record<string, HttpSource>> {
  const named = Object.entries(clients);
  if (named.length > 0) {
    if (given !== undefined) throw wrongFlag('--base-url is of no use: the policy names its clients');
    return Object.fromEntries(
      named.map(([name, { baseURL = OPENAI, apiKey, headers }]) => [name, httpSource({ baseURL, apiKey, headers })]),
    );
  }
  const baseURL = given ?? (env['OPENAI_BASE_URL'] || OPENAI);
  const apiKey = env['OPENAI_API_KEY'] || undefined;
  if (baseURL === OPENAI && apiKey === undefined) {
    throw wrongFlag('there is nobody to ask: set OPENAI_API_KEY, or name clients in the policy');
  }
  return { main: httpSource({ baseURL, apiKey }) };
}

import type { IncomingHttpHeaders } from 'node:http';
import type { CallOptions } from '../../client/CallOptions.ts';
import type { Fields } from '../../client/CallPlan.ts';
import { callOptionsOf } from '../../client/wire/callOptionsOf.ts';
import { invalidRequest } from '../../core/errors.ts';
import { MID_STREAM_MODES } from '../../core/midStream.ts';
import { modelPolicy } from '../../policy/modelPolicy.ts';
import type { GatewayMidStream, Policy } from '../../policy/Policy.ts';
import type { Caller } from './Keyring.ts';
import { NO_OBJECT, NOT_JSON_BODY, OTHER_PRIORITY, OTHER_TENANT } from './Refusal.ts';
import type { Refusal } from './Refusal.ts';

/** What a request asks for, as far as a gateway has to know. */
export interface AskedCall {
  readonly api: 'chat' | 'responses';
  readonly fields: Fields;
  /** The body as it came; `undefined` where somebody else has read it. */
  readonly bytes: Uint8Array | undefined;
  readonly model: string;
  readonly stream: boolean;
}

const PREFIX = 'x-sluice-';
const MAX_VALUE_LENGTH = 256;
const decoder = new TextDecoder('utf-8', { fatal: true });

/** The body as an object. */
export function fieldsOf(bytes: Uint8Array): Fields | Refusal {
  let value: unknown;
  try {
    value = JSON.parse(decoder.decode(bytes));
  } catch {
    return NOT_JSON_BODY;
  }
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : NO_OBJECT;
}

/** @throws SluiceError `invalid_request` */
export function askedCall(api: AskedCall['api'], fields: Fields, bytes: Uint8Array | undefined): AskedCall {
  const { model, stream = null, background } = fields;
  if (typeof model !== 'string' || model === '') throw invalidRequest('model', 'a string that is not empty', model);
  if (stream !== null && typeof stream !== 'boolean') throw invalidRequest('stream', 'true or false', stream);
  if (background === true) throw invalidRequest('background', 'false: a gateway keeps no answers', background);
  return { api, fields, bytes, model, stream: stream === true };
}

export interface CallTerms {
  readonly options: CallOptions;
  readonly midStream: GatewayMidStream;
}

/**
 * What headers, key and policy make of a call.
 *
 * @throws SluiceError `invalid_request`
 */
export function termsOf(
  { model }: AskedCall,
  headers: IncomingHttpHeaders,
  caller: Caller,
  policy: Policy,
): CallTerms | Refusal {
  const ours = oursOf(headers);
  const { conversation, deadlineMs = Infinity, ...named } = callOptionsOf(ours, ['mid-stream']);
  if (caller.tenant !== undefined && (named.tenant ?? caller.tenant) !== caller.tenant) return OTHER_TENANT;
  if (caller.priority !== undefined && (named.priority ?? caller.priority) !== caller.priority) return OTHER_PRIORITY;
  const tenant = caller.tenant ?? named.tenant;
  return {
    options: {
      tenant,
      priority: caller.priority ?? named.priority,
      conversation: ofTenant(conversation, tenant),
      // A caller may be in more of a hurry than the policy, but not in less.
      deadlineMs: Math.min(deadlineMs, policy.deadlineMs),
    },
    midStream: midStreamOf(ours.get('mid-stream'), policy, model),
  };
}

function oursOf(headers: IncomingHttpHeaders): ReadonlyMap<string, string> {
  const ours = new Map<string, string>();
  for (const name in headers) {
    const value = headers[name];
    if (!name.startsWith(PREFIX) || value === undefined) continue;
    const text = Array.isArray(value) ? value.join(', ') : value;
    if (text.length > MAX_VALUE_LENGTH) throw invalidRequest(name, `at most ${MAX_VALUE_LENGTH} characters`, text);
    ours.set(name.slice(PREFIX.length), text);
  }
  return ours;
}

/** Tenants may not stand in each other's way by names that both happen to use. */
function ofTenant(conversation: string | undefined, tenant: string | undefined): string | undefined {
  return conversation === undefined || tenant === undefined ? conversation : `${tenant}/${conversation}`;
}

function midStreamOf(header: string | undefined, policy: Policy, model: string): GatewayMidStream {
  if (header === undefined) return policy.gateway.midStream ?? modelPolicy(policy, model).midStream;
  const modes: readonly GatewayMidStream[] = [...MID_STREAM_MODES, 'buffer'];
  const mode = modes.find((each) => each === header);
  if (mode === undefined) throw invalidRequest('x-sluice-mid-stream', `one of ${modes.join(', ')}`, header);
  return mode;
}

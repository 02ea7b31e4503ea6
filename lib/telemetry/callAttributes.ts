import type { Attributes } from '@opentelemetry/api';
import type { ServerAddress } from '../core/attempt.ts';
import type { CallParameters, CallStart } from '../core/CallObserver.ts';
import { operationOf } from './operationOf.ts';
import { SPAN_ATTRIBUTES as NAMES } from './spanNames.ts';

/** How the names of the API are called by the conventions. */
const PARAMETERS: readonly (readonly [parameter: string, attribute: string])[] = [
  ['max_tokens', NAMES.requestMaxTokens],
  ['max_completion_tokens', NAMES.requestMaxTokens],
  ['max_output_tokens', NAMES.requestMaxTokens],
  ['temperature', NAMES.requestTemperature],
  ['top_p', NAMES.requestTopP],
  ['frequency_penalty', NAMES.requestFrequencyPenalty],
  ['presence_penalty', NAMES.requestPresencePenalty],
  ['seed', NAMES.requestSeed],
  ['stop', NAMES.requestStop],
  ['reasoning_effort', NAMES.requestReasoning],
  ['previous_response_id', NAMES.requestPreviousResponse],
  ['service_tier', NAMES.requestServiceTier],
];

const OUTPUT_TYPES: Readonly<Record<string, string>> = {
  text: 'text',
  json_object: 'json',
  json_schema: 'json',
  audio: 'speech',
};

/** What is known of a call when it starts: all of it at creation, where samplers see it. */
export function callAttributes(call: CallStart, provider: string): Attributes {
  const { api, model, stream, tenant, conversation, priority } = call;
  const attributes: Attributes = { ...call.attributes };
  attributes[NAMES.operation] = operationOf(call);
  attributes[NAMES.provider] = provider;
  attributes[NAMES.callId] = call.callId;
  if (model !== undefined) attributes[NAMES.requestModel] = model;
  if (stream) attributes[NAMES.requestStream] = true;
  if (api !== undefined) attributes[NAMES.apiType] = api === 'chat' ? 'chat_completions' : 'responses';
  if (conversation !== undefined) attributes[NAMES.conversation] = conversation;
  if (tenant !== undefined) attributes[NAMES.tenant] = tenant;
  if (priority !== undefined) attributes[NAMES.priority] = priority;
  serverAttributes(attributes, call.server);
  parameterAttributes(attributes, call.parameters);
  return attributes;
}

export function serverAttributes(attributes: Attributes, server: ServerAddress | undefined): void {
  if (server === undefined) return;
  attributes[NAMES.serverAddress] = server.host;
  attributes[NAMES.serverPort] = server.port;
}

function parameterAttributes(attributes: Attributes, parameters: CallParameters): void {
  for (const [parameter, attribute] of PARAMETERS) {
    const value = parameters[parameter];
    if (value !== undefined) attributes[attribute] = typeof value === 'object' ? [...value] : value;
  }
  const { n, response_format: format } = parameters;
  if (n !== undefined && n !== 1) attributes[NAMES.requestChoices] = n as number;
  const type = typeof format === 'string' ? OUTPUT_TYPES[format] : undefined;
  if (type !== undefined) attributes[NAMES.outputType] = type;
}

/** The parts of a provider that can be asked. */
export type ProviderApi = 'chat' | 'responses' | 'embeddings';

/** A request as it arrived. Names of headers are in lower case. */
export interface ProviderRequest {
  readonly api: ProviderApi;
  readonly body: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string | undefined>> | undefined;
}

/** What the provider reads from a request. */
export interface RequestFacts {
  readonly request: ProviderRequest;
  readonly model: string;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  readonly conversation: string | undefined;
  readonly promptTokens: number;
  /** `max_completion_tokens`, `max_tokens` or `max_output_tokens`. */
  readonly outputLimit: number | undefined;
  readonly choices: number;
  /** The function that the request insists on. */
  readonly tool: string | undefined;
  readonly reasons: boolean;
  /** Text of a last message of the assistant, which the answer goes on from. */
  readonly prefix: string | undefined;
}

/** Why a request cannot be read, as providers word it. */
export interface RequestFault {
  readonly param: string;
  readonly message: string;
}

export type Fields = Readonly<Record<string, unknown>>;

export function readRequest(request: ProviderRequest): RequestFacts | RequestFault {
  const { api, body } = request;
  const { model } = body;
  if (typeof model !== 'string' || model === '')
    return { param: 'model', message: 'you must provide a model parameter' };
  const input = api === 'chat' ? body['messages'] : body['input'];
  const param = api === 'chat' ? 'messages' : 'input';
  const readable = Array.isArray(input) ? input.length > 0 : api !== 'chat' && typeof input === 'string';
  if (!readable)
    return {
      param,
      message: `'${param}' must be ${api === 'chat' ? 'a list' : 'a string or a list'} with something in it`,
    };
  const options = body['stream_options'];
  return {
    request,
    model,
    stream: api !== 'embeddings' && body['stream'] === true,
    includeUsage: isFields(options) && options['include_usage'] === true,
    conversation: conversationOf(request),
    promptTokens: countPromptTokens(body),
    outputLimit:
      whole(body['max_completion_tokens']) ??
      whole(body['max_tokens']) ??
      whole(body['max_output_tokens']) ??
      undefined,
    choices: api === 'chat' ? Math.min(128, whole(body['n']) ?? 1) : 1,
    tool: requiredTool(body),
    reasons: asksForReasoning(body),
    prefix: api === 'embeddings' ? undefined : prefixOf(input),
  };
}

export function isRequestFault(read: RequestFacts | RequestFault): read is RequestFault {
  return !('request' in read);
}

/**
 * Tokens that the provider counts for the prompt: a quarter of the characters, 4 for each message and 85 for each part
 * that is not text.
 */
export function countPromptTokens(body: Fields): number {
  let tokens = typeof body['instructions'] === 'string' ? body['instructions'].length / 4 : 0;
  const input = body['messages'] ?? body['input'];
  if (typeof input === 'string') return Math.ceil(tokens + input.length / 4);
  if (!Array.isArray(input)) return 0;
  for (const item of input as unknown[]) {
    if (typeof item === 'string') tokens += item.length / 4;
    else if (isFields(item)) tokens += 4 + countContent(item['content']);
    else tokens += 1;
  }
  return Math.ceil(tokens);
}

function countContent(content: unknown): number {
  if (typeof content === 'string') return content.length / 4;
  if (!Array.isArray(content)) return 0;
  let tokens = 0;
  for (const part of content as unknown[]) {
    const text = isFields(part) ? part['text'] : part;
    tokens += typeof text === 'string' ? text.length / 4 : 85;
  }
  return tokens;
}

/** The conversation's name: `x-conversation`, else `metadata.conversation`, else `user`. */
export function conversationOf({ headers, body }: Pick<ProviderRequest, 'headers' | 'body'>): string | undefined {
  const metadata = body['metadata'];
  const named =
    headers?.['x-conversation'] ?? (isFields(metadata) ? metadata['conversation'] : undefined) ?? body['user'];
  return typeof named === 'string' && named !== '' ? named : undefined;
}

/** Text of the last message, if the assistant wrote it. */
export function prefixOf(input: unknown): string | undefined {
  const last: unknown = Array.isArray(input) ? input.at(-1) : undefined;
  if (!isFields(last) || last['role'] !== 'assistant') return undefined;
  const { content } = last;
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return undefined;
  return (content as unknown[])
    .map((part) => (isFields(part) && typeof part['text'] === 'string' ? part['text'] : ''))
    .join('');
}

function requiredTool(body: Fields): string | undefined {
  const { tool_choice: choice, tools } = body;
  if (isFields(choice)) {
    const named = isFields(choice['function']) ? choice['function']['name'] : choice['name'];
    if (typeof named === 'string') return named;
  }
  if (choice !== 'required' || !Array.isArray(tools)) return undefined;
  const first: unknown = tools[0];
  if (!isFields(first)) return undefined;
  const name = isFields(first['function']) ? first['function']['name'] : first['name'];
  return typeof name === 'string' ? name : undefined;
}

function asksForReasoning(body: Fields): boolean {
  const { reasoning_effort: effort, reasoning } = body;
  const asked = effort ?? (isFields(reasoning) ? reasoning['effort'] : undefined);
  return asked === 'low' || asked === 'medium' || asked === 'high';
}

function whole(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : undefined;
}

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

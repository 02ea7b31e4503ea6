/** What spans say, by name. Users' searches and dashboards depend on every word of it. */
export const SPAN_ATTRIBUTES = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  conversation: 'gen_ai.conversation.id',
  outputType: 'gen_ai.output.type',
  requestModel: 'gen_ai.request.model',
  requestStream: 'gen_ai.request.stream',
  requestSeed: 'gen_ai.request.seed',
  requestChoices: 'gen_ai.request.choice.count',
  requestMaxTokens: 'gen_ai.request.max_tokens',
  requestTemperature: 'gen_ai.request.temperature',
  requestTopP: 'gen_ai.request.top_p',
  requestFrequencyPenalty: 'gen_ai.request.frequency_penalty',
  requestPresencePenalty: 'gen_ai.request.presence_penalty',
  requestStop: 'gen_ai.request.stop_sequences',
  requestReasoning: 'gen_ai.request.reasoning.level',
  requestPreviousResponse: 'gen_ai.request.previous_response.id',
  responseId: 'gen_ai.response.id',
  responseModel: 'gen_ai.response.model',
  responseFinishReasons: 'gen_ai.response.finish_reasons',
  timeToFirstChunk: 'gen_ai.response.time_to_first_chunk',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  cacheReadTokens: 'gen_ai.usage.cache_read.input_tokens',
  reasoningTokens: 'gen_ai.usage.reasoning.output_tokens',
  inputMessages: 'gen_ai.input.messages',
  outputMessages: 'gen_ai.output.messages',
  systemInstructions: 'gen_ai.system_instructions',
  toolDefinitions: 'gen_ai.tool.definitions',
  apiType: 'openai.api.type',
  requestServiceTier: 'openai.request.service_tier',
  responseServiceTier: 'openai.response.service_tier',
  systemFingerprint: 'openai.response.system_fingerprint',
  serverAddress: 'server.address',
  serverPort: 'server.port',
  errorType: 'error.type',
  status: 'http.response.status_code',
  resendCount: 'http.request.resend_count',
  callId: 'sluice.call.id',
  tenant: 'sluice.tenant',
  priority: 'sluice.priority',
  outcome: 'sluice.outcome',
  attempts: 'sluice.attempts',
  wastedTokens: 'sluice.usage.wasted_tokens',
  cost: 'sluice.cost',
  usageEstimated: 'sluice.usage.estimated',
  contentTruncated: 'sluice.content.truncated',
  attempt: 'sluice.attempt.number',
  requestId: 'sluice.response.request_id',
  queue: 'sluice.queue',
  queuePosition: 'sluice.queue.position',
  queueExpected: 'sluice.queue.expected_ms',
} as const;

/** Attributes of events on spans; `error.type` besides. */
export const EVENT_ATTRIBUTES = {
  waitMs: 'sluice.wait_ms',
  waitSource: 'sluice.wait_source',
  breaker: 'sluice.breaker',
  from: 'sluice.from',
  to: 'sluice.to',
  reason: 'sluice.reason',
  retryAfterMs: 'sluice.retry_after_ms',
  stage: 'sluice.stage',
} as const;

export const SPAN_EVENTS = {
  retry: 'retry.scheduled',
  breaker: 'breaker.changed',
  fallback: 'fallback',
  restart: 'restart',
  refused: 'refused',
  cancelled: 'cancelled',
  firstChunk: 'first_chunk',
} as const;

/** Names of spans. `{operation}` is `chat` unless the call says otherwise. */
export const SPAN_NAMES = {
  call: '{operation} {model}',
  attempt: 'attempt {model}',
  queue: 'queue',
} as const;

/** Name and version of the instrumentation scope are those of the package. */
export const SCOPE_NAME = 'sluice';

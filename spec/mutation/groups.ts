/** Files that are mutated together, and the specs that are to notice. */
export interface MutationGroup {
  readonly part: 'limits' | 'wire' | 'operators';
  readonly files: readonly string[];
  readonly specs: readonly string[];
}

const limits = (files: readonly string[], specs: readonly string[]): MutationGroup => ({
  part: 'limits',
  files: files.map((name) => `lib/limits/${name}.ts`),
  specs: specs.map((name) => (name.includes('/') ? `spec/${name}-spec.ts` : `spec/limits/${name}-spec.ts`)),
});

const wire = (files: readonly string[], specs: readonly string[]): MutationGroup => ({
  part: 'wire',
  files: files.map((name) => `lib/wire/${name}.ts`),
  specs: specs.map((name) => `spec/wire/${name}-spec.ts`),
});

const operators = (files: readonly string[], specs: readonly string[]): MutationGroup => ({
  part: 'operators',
  files: files.map((name) => `lib/operators/${name}.ts`),
  specs: specs.map((name) => `spec/operators/${name}-spec.ts`),
});

/** Small, so that a group takes minutes: loading all specs for every file would take most of the time. */
export const GROUPS: Readonly<Record<string, MutationGroup>> = {
  bucket: limits(['TokenBucket', 'LowWater'], ['TokenBucket', 'LowWater']),
  quota: limits(
    ['Quota', 'MinuteBucket', 'LinkedQueue', 'Cooldown'],
    ['Quota', 'QuotaAtOnce', 'QuotaLayer', 'MinuteBucket', 'LinkedQueue', 'Cooldown'],
  ),
  layers: limits(
    ['QuotaLayer', 'QuotaOptions', 'QuotaReservation', 'QuotaRoute', 'refunds', 'WaitLine', 'layersOf', 'LimitStore'],
    ['Quota', 'QuotaLayer', 'QuotaReservation', 'QuotaRoute', 'WaitLine', 'layersOf', 'refunds'],
  ),
  breaker: limits(['CircuitBreaker', 'breakerRules', 'SlidingSums'], ['CircuitBreaker', 'SlidingSums']),
  slots: limits(
    ['ConcurrencyLimit', 'Aimd', 'slotRefused'],
    ['ConcurrencyLimit', 'Aimd', 'slotRefused', 'operators/createConcurrencyLimit'],
  ),
  retry: limits(['RetryBudget', 'backoff', 'retryRules'], ['RetryBudget', 'backoff', 'operators/retryWithJitter']),
  queue: limits(['FairQueue', 'work'], ['FairQueue', 'FairQueueBooks', 'work']),
  lanes: limits(
    ['ConversationLanes', 'Lane', 'TurnEstimate', 'turnBound', 'laneRefusals'],
    ['ConversationLanes', 'TurnEstimate', 'laneRefusals', 'operators/createLanes'],
  ),
  spend: limits(['SpendLedger', 'SpendTotals', 'LeastTimes'], ['SpendLedger', 'SpendTotals', 'LeastTimes']),
  learning: limits(
    ['RateSearch', 'LearnedRate', 'BetweenRejections', 'ProbePace'],
    ['RateSearch', 'RateSearchRules', 'LearnedRate', 'LearnedRateRules', 'LearnedRateGrowth'],
  ),
  admission: limits(
    [
      ...['Admission', 'AdmissionGrant', 'AdmissionLevels', 'AdmissionOptions', 'AdmissionStep'],
      ...['admissionRefusals', 'foreseenMs', 'placesOf', 'waitBound'],
    ],
    [
      ...[
        'AdmissionAsk',
        'AdmissionAtOnce',
        'AdmissionGrant',
        'AdmissionLevels',
        'AdmissionOptions',
        'AdmissionReload',
      ],
      ...['AdmissionSteps', 'AdmissionTargets', 'chooseNext', 'placesOf'],
    ],
  ),
  fairness: limits(
    ['AdmissionPool', 'AdmissionTenant', 'bestFirst', 'chooseNext', 'joinedQueues'],
    [
      ...['AdmissionAsk', 'AdmissionAtOnce', 'AdmissionPool', 'AdmissionReload', 'AdmissionSteps', 'AdmissionTenant'],
      ...['chooseNext'],
    ],
  ),
  targets: limits(
    ['AdmissionStanding', 'AdmissionTarget', 'AdmissionTargets'],
    [
      ...['AdmissionAsk', 'AdmissionAtOnce', 'AdmissionGrant', 'AdmissionPool', 'AdmissionReload', 'AdmissionSteps'],
      ...['AdmissionTarget', 'AdmissionTargets'],
    ],
  ),
  hints: wire(
    ['hints', 'headers', 'limitHeaders', 'durations', 'instants', 'bodyHints'],
    ['hints', 'bodyHints', 'headers', 'limitHeaders', 'durations', 'instants'],
  ),
  errors: wire(
    ['classify', 'classifyResponse', 'classifyThrown', 'codes', 'errorBody', 'judge', 'vocabulary'],
    [
      ...['classifyResponse', 'classifyVendors', 'classifyLargeVendors', 'classifyThrown', 'classifyThrownFields'],
      ...['classifyInStream', 'codes', 'errorBody', 'judge', 'judgeWords', 'redact'],
    ],
  ),
  answers: wire(
    ['AnswerAssembler', 'ChoiceBuilder', 'ToolCallBuilder', 'ResponseItems'],
    ['AnswerAssembler', 'ChoiceBuilder', 'ToolCallBuilder', 'ResponseItems', 'ChatReader', 'ResponsesReader'],
  ),
  readers: wire(
    [
      'ChatReader',
      'ChunkMould',
      'ChunkReader',
      'RepeatedChunk',
      'ResponsesReader',
      'ownText',
      'responseEvents',
      'usage',
    ],
    ['ChatReader', 'RepeatedChunk', 'ResponsesReader', 'responseEvents', 'usage'],
  ),
  decoding: wire(['SseDecoder', 'Utf8Reads'], ['SseDecoder', 'Utf8Reads']),
  requests: wire(
    ['estimate', 'estimateUsage', 'redact', 'request', 'utf8Length'],
    ['estimate', 'estimateUsage', 'redact', 'request', 'utf8Length', 'classifyThrown'],
  ),
  retries: operators(
    [
      ...['retryWithJitter', 'RetryRun', 'RetryWithJitterOptions', 'createRetryBudget'],
      ...['MidStream', 'joinAnswers', 'marked', 'Turn', 'withAssistantPrefix'],
    ],
    ['retryWithJitter', 'RetryRun', 'midStream', 'joinAnswers', 'Turn', 'withAssistantPrefix', 'fallbackModel'],
  ),
  fallbacks: operators(
    ['fallbackModel', 'FallbackRun', 'FallbackChain', 'FallbackModelOptions'],
    ['fallbackModel', 'FallbackRun', 'FallbackChain', 'midStream'],
  ),
  breaking: operators(
    ['circuitBreak', 'createBreaker'],
    ['circuitBreak', 'smallPorts', 'createBreaker', 'breakerEdges', 'breakerContract'],
  ),
  throttling: operators(
    ['throttleByBucket', 'QuotaDesk', 'QuotaGrant', 'ServeLoop', 'costOption', 'createQuota', 'createQuotas'],
    ['throttleByBucket', 'smallPorts', 'createQuota', 'createQuotas', 'quotaContract', 'QuotaDesk', 'ServeLoop'],
  ),
  admitting: operators(
    [
      'AdmissionDesk',
      'AdmissionHold',
      'admit',
      'LocalAdmitted',
      'admissionErrors',
      'admissionSnapshot',
      'createAdmission',
    ],
    ['AdmissionDesk', 'admissionAtOnce', 'admit', 'LocalAdmitted', 'createAdmission'],
  ),
  holding: operators(
    ['holding', 'Hold', 'HeldRun', 'scoped'],
    ['holding', 'HeldRun', 'scoped', 'circuitBreak', 'admit', 'retryWithJitter'],
  ),
  conversations: operators(
    ['concatByConversation', 'inConversation', 'createLanes', 'Keyed'],
    ['concatByConversation', 'inConversation', 'createLanes', 'Keyed', 'conversationEdges'],
  ),
  concurrency: operators(
    ['limitConcurrency', 'createConcurrencyLimit'],
    ['limitConcurrency', 'createConcurrencyLimit', 'concurrencyContract'],
  ),
  deadlines: operators(
    ['withDeadline', 'withSignal', 'Progress', 'degradeTo', 'abortError', 'after'],
    ['withDeadline', 'withSignal', 'deadlineEdges', 'Progress', 'degradeTo'],
  ),
  texts: operators(['answer', 'answerPart', 'lastAnswer', 'text', 'FirstText'], ['answer', 'text']),
  params: operators(['adaptParams'], ['adaptParams']),
  iterating: operators(['toAsyncIterable'], ['toAsyncIterable']),
  lines: operators(
    ['shared/PlaceCounts', 'shared/SharedLine', 'shared/SharedAdmitted', 'shared/Ceiling'],
    ['shared/PlaceCounts', 'shared/SharedLine', 'shared/SharedAdmitted', 'shared/Ceiling'],
  ),
  shared: {
    part: 'operators',
    files: [
      'lib/operators/shared/Shared{AdmissionDesk,Ceilings,Places,Target,Targets}.ts',
      'lib/operators/shared/{createSharedAdmission,localPart,storeName,Waiter}.ts',
    ],
    specs: ['spec/operators/shared/*-spec.ts'],
  },
};

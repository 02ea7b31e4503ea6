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

/** Small, so that a group takes minutes: loading all specs for every file would take most of the time. */
export const GROUPS: Readonly<Record<string, MutationGroup>> = {
  bucket: limits(['TokenBucket', 'LowWater'], ['TokenBucket', 'LowWater']),
  quota: limits(
    [
      'Quota',
      'MinuteBucket',
      'QuotaLayer',
      'QuotaOptions',
      'QuotaReservation',
      'QuotaRoute',
      'refunds',
      'WaitLine',
      'LinkedQueue',
      'Cooldown',
    ],
    ['Quota', 'QuotaLayer', 'MinuteBucket', 'LinkedQueue', 'Cooldown'],
  ),
  breaker: limits(['CircuitBreaker', 'breakerRules', 'SlidingSums'], ['CircuitBreaker', 'SlidingSums']),
  slots: limits(
    ['ConcurrencyLimit', 'Aimd', 'slotRefused'],
    ['ConcurrencyLimit', 'Aimd', 'slotRefused', 'operators/createConcurrencyLimit'],
  ),
  retry: limits(['RetryBudget', 'backoff', 'retryRules'], ['RetryBudget', 'backoff', 'operators/retryWithJitter']),
  queue: limits(['FairQueue', 'work'], ['FairQueue']),
  lanes: limits(
    ['ConversationLanes', 'Lane', 'TurnEstimate', 'turnBound', 'laneRefusals'],
    ['ConversationLanes', 'TurnEstimate', 'laneRefusals', 'operators/createLanes'],
  ),
  spend: limits(['SpendLedger', 'SpendTotals', 'LeastTimes'], ['SpendLedger', 'LeastTimes']),
  learning: limits(
    ['RateSearch', 'LearnedRate', 'BetweenRejections', 'ProbePace'],
    ['RateSearch', 'LearnedRate', 'operators/admissionLearns'],
  ),
  admission: limits(
    [
      ...['Admission', 'AdmissionGrant', 'AdmissionLevels', 'AdmissionOptions', 'AdmissionPool', 'AdmissionStanding'],
      ...[
        'AdmissionTarget',
        'AdmissionTargets',
        'AdmissionTenant',
        'admissionRefusals',
        'chooseNext',
        'layersOf',
        'placesOf',
      ],
    ],
    [
      ...['Admission', 'AdmissionReload', 'operators/createAdmission', 'operators/admissionFairness'],
      ...['operators/admissionForgets', 'operators/admissionLearns', 'operators/admit'],
    ],
  ),
  hints: wire(
    ['hints', 'headers', 'limitHeaders', 'durations', 'instants', 'bodyHints'],
    ['hints', 'headers', 'limitHeaders', 'durations', 'instants'],
  ),
  errors: wire(
    ['classify', 'classifyResponse', 'classifyThrown', 'codes', 'errorBody', 'judge', 'vocabulary'],
    ['classifyResponse', 'classifyThrown', 'classifyInStream', 'errorBody'],
  ),
  answers: wire(
    ['AnswerAssembler', 'ChoiceBuilder', 'ToolCallBuilder', 'ResponseItems'],
    ['AnswerAssembler', 'ChoiceBuilder', 'ToolCallBuilder', 'ResponseItems', 'ChatReader', 'ResponsesReader'],
  ),
  readers: wire(
    ['ChatReader', 'ChunkReader', 'ResponsesReader', 'responseEvents', 'usage'],
    ['ChatReader', 'ResponsesReader', 'usage'],
  ),
  decoding: wire(['SseDecoder', 'Utf8Reads'], ['SseDecoder']),
  requests: wire(
    ['estimate', 'estimateUsage', 'redact', 'request', 'utf8Length'],
    ['estimate', 'estimateUsage', 'redact', 'request', 'utf8Length', 'classifyThrown'],
  ),
  operators: { part: 'operators', files: ['lib/operators/*.ts'], specs: ['spec/operators/*-spec.ts'] },
  shared: { part: 'operators', files: ['lib/operators/shared/*.ts'], specs: ['spec/operators/shared/*-spec.ts'] },
};

/** What a metric is called, and what it may say. Users' dashboards and alerts depend on every word of it. */
export interface MetricShape {
  readonly name: string;
  /** A `gauge` may also go down; an `upDownCounter` adds up over processes. */
  readonly kind: 'counter' | 'upDownCounter' | 'gauge' | 'histogram';
  /** As UCUM writes it; a word in braces is a plain number of those. */
  readonly unit: string;
  readonly description: string;
  /** Keys of the attributes. One that does not apply to a measurement is absent from it. */
  readonly attributes: readonly string[];
  /** Upper bounds, in the unit. */
  readonly buckets?: readonly number[];
}

export type SluiceMetric =
  | 'calls'
  | 'requests'
  | 'callAttempts'
  | 'attemptDuration'
  | 'retries'
  | 'queueWait'
  | 'queueSize'
  | 'inflight'
  | 'breakerState'
  | 'breakerTransitions'
  | 'concurrencyLimit'
  | 'cooldowns'
  | 'fallbacks'
  | 'refusals'
  | 'tokensReserved'
  | 'tokensUsed'
  | 'tokensWasted'
  | 'cost'
  | 'spendCapUsed'
  | 'storeLosses';

export const MODEL_ATTRIBUTE = 'gen_ai.request.model';
export const OUTCOME_ATTRIBUTE = 'sluice.outcome';
export const ERROR_ATTRIBUTE = 'error.type';
export const STATUS_ATTRIBUTE = 'http.response.status_code';
export const TENANT_ATTRIBUTE = 'sluice.tenant';
export const QUEUE_ATTRIBUTE = 'sluice.queue';
export const BREAKER_ATTRIBUTE = 'sluice.breaker';
export const LIMITER_ATTRIBUTE = 'sluice.limiter';
export const FROM_ATTRIBUTE = 'sluice.from';
export const TO_ATTRIBUTE = 'sluice.to';
export const REASON_ATTRIBUTE = 'sluice.reason';

/** Seconds: from a refusal at the door to an answer of several minutes. */
export const DURATION_BUCKETS: readonly number[] = [
  0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
];
const ATTEMPT_BUCKETS = [1, 2, 3, 4, 5, 6, 8, 10];

const MODEL = [MODEL_ATTRIBUTE];
const MODEL_AND_ERROR = [MODEL_ATTRIBUTE, ERROR_ATTRIBUTE];
const ATTEMPT = [MODEL_ATTRIBUTE, OUTCOME_ATTRIBUTE, STATUS_ATTRIBUTE, ERROR_ATTRIBUTE];

/** The metrics of this library. The GenAI ones are in `genAiMetricNames.ts`. */
export const SLUICE_METRICS: Readonly<Record<SluiceMetric, MetricShape>> = {
  calls: {
    name: 'sluice.calls',
    kind: 'counter',
    unit: '{call}',
    description: 'Calls that have ended.',
    attributes: [MODEL_ATTRIBUTE, OUTCOME_ATTRIBUTE, ERROR_ATTRIBUTE],
  },
  requests: {
    name: 'sluice.requests',
    kind: 'counter',
    unit: '{request}',
    description: 'Attempts that have ended: requests sent to a provider.',
    attributes: ATTEMPT,
  },
  callAttempts: {
    name: 'sluice.call.attempts',
    kind: 'histogram',
    unit: '{attempt}',
    description: 'Attempts made for a call, where any was.',
    attributes: MODEL,
    buckets: ATTEMPT_BUCKETS,
  },
  attemptDuration: {
    name: 'sluice.attempt.duration',
    kind: 'histogram',
    unit: 's',
    description: 'Time from sending an attempt to its end.',
    attributes: ATTEMPT,
    buckets: DURATION_BUCKETS,
  },
  retries: {
    name: 'sluice.retries',
    kind: 'counter',
    unit: '{retry}',
    description: 'Retries that were scheduled, by the error that was met.',
    attributes: MODEL_AND_ERROR,
  },
  queueWait: {
    name: 'sluice.queue.wait',
    kind: 'histogram',
    unit: 's',
    description: 'Time waited for what was granted in the end.',
    attributes: [MODEL_ATTRIBUTE, QUEUE_ATTRIBUTE, TENANT_ATTRIBUTE],
    buckets: DURATION_BUCKETS,
  },
  queueSize: {
    name: 'sluice.queue.size',
    kind: 'gauge',
    unit: '{attempt}',
    description: 'Attempts, or turns of a conversation, that wait.',
    attributes: [QUEUE_ATTRIBUTE, TENANT_ATTRIBUTE],
  },
  inflight: {
    name: 'sluice.inflight',
    kind: 'upDownCounter',
    unit: '{attempt}',
    description: 'Attempts that were sent and have not ended.',
    attributes: [MODEL_ATTRIBUTE, TENANT_ATTRIBUTE],
  },
  breakerState: {
    name: 'sluice.breaker.state',
    kind: 'gauge',
    unit: '1',
    description: '0: closed, 1: half open or ramping up, 2: open.',
    attributes: [BREAKER_ATTRIBUTE],
  },
  breakerTransitions: {
    name: 'sluice.breaker.transitions',
    kind: 'counter',
    unit: '{transition}',
    description: 'Changes of state of a breaker.',
    attributes: [BREAKER_ATTRIBUTE, FROM_ATTRIBUTE, TO_ATTRIBUTE],
  },
  concurrencyLimit: {
    name: 'sluice.concurrency.limit',
    kind: 'gauge',
    unit: '{attempt}',
    description: 'Attempts that a limiter lets be in flight at once, since it last changed.',
    attributes: [LIMITER_ATTRIBUTE],
  },
  cooldowns: {
    name: 'sluice.cooldowns',
    kind: 'counter',
    unit: '{cooldown}',
    description: 'Answers that paused a quota for everyone.',
    attributes: MODEL_AND_ERROR,
  },
  fallbacks: {
    name: 'sluice.fallbacks',
    kind: 'counter',
    unit: '{fallback}',
    description: 'Calls handed to another model, by the error that was met.',
    attributes: [FROM_ATTRIBUTE, TO_ATTRIBUTE, ERROR_ATTRIBUTE],
  },
  refusals: {
    name: 'sluice.refusals',
    kind: 'counter',
    unit: '{refusal}',
    description: 'Local refusals: nothing was sent.',
    attributes: MODEL_AND_ERROR,
  },
  tokensReserved: {
    name: 'sluice.tokens.reserved',
    kind: 'counter',
    unit: '{token}',
    description: 'Tokens that attempts reserved of a quota.',
    attributes: MODEL,
  },
  tokensUsed: {
    name: 'sluice.tokens.used',
    kind: 'counter',
    unit: '{token}',
    description: 'Tokens of attempts, input and output together, as reported, or else as estimated.',
    attributes: MODEL,
  },
  tokensWasted: {
    name: 'sluice.tokens.wasted',
    kind: 'counter',
    unit: '{token}',
    description: 'Those of them whose answer was not delivered.',
    attributes: MODEL,
  },
  cost: {
    name: 'sluice.cost',
    kind: 'counter',
    unit: '{currency}',
    description: 'Cost of calls by the model that was asked first, in the currency of the prices of the policy.',
    attributes: [MODEL_ATTRIBUTE, TENANT_ATTRIBUTE],
  },
  spendCapUsed: {
    name: 'sluice.spend.cap_used',
    kind: 'gauge',
    unit: '1',
    description: 'Share of its daily cap that a tenant has spent today.',
    attributes: [TENANT_ATTRIBUTE],
  },
  storeLosses: {
    name: 'sluice.store.losses',
    kind: 'counter',
    unit: '{loss}',
    description: 'Times that the store shared with other processes was lost, by the reason.',
    attributes: [REASON_ATTRIBUTE],
  },
};

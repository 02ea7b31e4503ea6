import type { z } from 'zod';
import { MID_STREAM_MODES } from '../../core/midStream.ts';
import { STAGE_TIMER_DEFAULTS } from '../../core/stageTimeouts.ts';
import type { StageTimeouts } from '../../core/stageTimeouts.ts';
import { AIMD_DEFAULTS } from '../../limits/Aimd.ts';
import type { AimdOptions } from '../../limits/Aimd.ts';
import { JITTERS } from '../../limits/backoff.ts';
import { CIRCUIT_BREAKER_DEFAULTS } from '../../limits/breakerRules.ts';
import type { CircuitBreakerOptions } from '../../limits/breakerRules.ts';
import { RETRY_RULE_DEFAULTS } from '../../limits/retryRules.ts';
import { POLICY_DEFAULTS } from '../policyDefaults.ts';
import type { BreakerInput, ConcurrencyInput, DeploymentInput, ModelInput, RetryInput } from '../PolicyInput.ts';
import { RETRY_CLASS_NAMES } from '../retryClasses.ts';
import { fallbackOnSchema } from './fallbackOnSchema.ts';
import * as is from './leaves.ts';
import { setting, strict } from './leaves.ts';
import { layerSchema } from './quotaSchema.ts';

const anyValue = 'parameters to values';

const retry: z.ZodType<RetryInput> = strict({
  attempts: setting(is.whole(1), 'Attempts at the model, the first included.', RETRY_RULE_DEFAULTS.attempts),
  baseMs: setting(
    is.finite(0),
    'Ceiling of the first wait, doubled with each further one.',
    RETRY_RULE_DEFAULTS.baseMs,
  ),
  capMs: setting(is.finite(0), 'No ceiling is above this.', RETRY_RULE_DEFAULTS.capMs),
  jitter: setting(is.oneOf(JITTERS), 'How a wait is drawn below its ceiling.', RETRY_RULE_DEFAULTS.jitter),
  maxHintMs: setting(is.finiteOrOff(0), 'The longest hint that is slept out.', RETRY_RULE_DEFAULTS.maxHintMs),
});

function breakerSchema(B: Partial<typeof CIRCUIT_BREAKER_DEFAULTS>): z.ZodType<BreakerInput> {
  return strict({
    consecutiveFailures: setting(is.wholeOrOff(1), 'Opens after so many failures in a row.', B.consecutiveFailures),
    errorRatio: setting(is.shareOrOff(), 'Opens when this part of the calls in the window failed.', B.errorRatio),
    windowMs: setting(is.above0(), 'Length of the window.', B.windowMs),
    minCalls: setting(is.whole(1), 'The error ratio counts from so many calls on.', B.minCalls),
    openMs: setting(is.above0(), 'How long it stays open the first time.', B.openMs),
    openFactor: setting(is.finite(1), 'The open time grows by this factor.', B.openFactor),
    steadyProbes: setting(is.whole(0), 'So many failed probes leave the open time as it is.', B.steadyProbes),
    openCapMs: setting(is.above0(), 'Longest open time; openMs if that is longer.', B.openCapMs),
    halfOpenShare: setting(is.share(), 'Part of the traffic that may probe while half-open.', B.halfOpenShare),
    halfOpenMaxProbes: setting(is.whole(1), 'Most probes without content at one time.', B.halfOpenMaxProbes),
    halfOpenMaxMs: setting(is.above0(), 'A probe without content for so long opens it again.', B.halfOpenMaxMs),
    rampMs: setting(is.finite(0), 'After closing, traffic grows back over this time.', B.rampMs),
    countRateLimited: setting(is.flag(), 'Whether a 429 counts as a failure.', B.countRateLimited),
  } satisfies Record<keyof CircuitBreakerOptions, unknown>);
}

function concurrencySchema(A: Partial<typeof AIMD_DEFAULTS>): z.ZodType<ConcurrencyInput> {
  return strict({
    limit: setting(is.wholeOrOff(1), 'A limit that stands. Not together with the others.'),
    initial: setting(is.whole(1), 'Where the limit starts, within min and max.', A.initial),
    min: setting(is.whole(1), 'The limit never falls below.', A.min),
    max: setting(is.whole(1), 'The limit never rises above.', A.max),
    decrease: setting(is.fraction(), 'A cut multiplies the limit by this.', A.decrease),
    growEveryMs: setting(is.finite(0), 'The limit grows at most this often.', A.growEveryMs),
    maxOverMeasured: setting(
      is.finiteOrOff(1),
      'The limit does not grow beyond this many times the concurrency measured.',
      A.maxOverMeasured,
    ),
    maxFirstContentMs: setting(
      is.above0OrOff(),
      'The limit is cut when first content takes longer on average.',
      A.maxFirstContentMs,
    ),
  } satisfies Record<keyof AimdOptions | 'limit', unknown>);
}

const deployment: z.ZodType<DeploymentInput> = strict({
  client: setting(is.text('the name of a client'), 'Which client serves it. Default: that of the model.'),
  model: setting(is.text('the name of a model'), 'The name it has there. Default: the name that was asked for.'),
  quota: setting(layerSchema, 'A layer of its own, and the rules of its provider.'),
  breaker: setting(breakerSchema({}), 'Merged over that of the model.'),
  concurrency: setting(concurrencySchema({}), 'Merged over that of the model.'),
});

const params = strict({
  omit: setting(is.listOf(is.text('the name of a parameter'), 'names of parameters'), 'Parameters left out.', []),
  rename: setting(is.named(is.text('the new name'), 'old names to new ones'), 'Parameters by another name.', {}),
  set: setting(is.named(is.anything(), anyValue), 'Parameters and their values, whatever the request says.', {}),
});

const price = strict({
  inputPerMTok: is.finite(0).meta({ description: 'Per million tokens of input.' }),
  outputPerMTok: is.finite(0).meta({ description: 'Per million tokens of output.' }),
  cachedInputPerMTok: setting(is.finite(0), 'Per million tokens of input read from a cache. Default: inputPerMTok.'),
});

const T = STAGE_TIMER_DEFAULTS;
const timeouts = strict({
  headersMs: setting(is.above0OrOff(), 'From dispatch to the head of the answer.', T.headersMs),
  firstContentMs: setting(
    is.above0OrOff(),
    `From dispatch to the first content. Default: ${T.firstContentMs}, or half of what is left to the deadline if less.`,
  ),
  idleMs: setting(is.above0OrOff(), 'Between two pieces of progress, from the first content on.', T.idleMs),
  tailMs: setting(is.finiteOrOff(0), 'From the last finish reason to the end. Running out is no failure.', T.tailMs),
  responseMs: setting(
    is.above0OrOff(),
    `From dispatch to the whole of an answer that is not streamed. Default: the deadline, or else ${T.responseMs}.`,
  ),
} satisfies Record<keyof StageTimeouts, unknown>);

export const modelSchema: z.ZodType<ModelInput> = strict({
  class: setting(is.oneOf(RETRY_CLASS_NAMES), 'Retries and breaker to start from.'),
  client: setting(is.text('the name of a client'), 'Which client serves it.', POLICY_DEFAULTS.client),
  deployments: setting(is.listOf(deployment, 'deployments', 1), 'Where it is served; the least loaded is taken.'),
  quota: setting(layerSchema, 'The layer of the model, over all its deployments.'),
  retry: setting(retry, 'Whether and when there is another attempt.'),
  breaker: setting(
    breakerSchema(CIRCUIT_BREAKER_DEFAULTS),
    'When attempts are refused because the provider is in trouble.',
  ),
  concurrency: setting(concurrencySchema(AIMD_DEFAULTS), 'How many attempts may run at one time.'),
  fallback: setting(
    is.listOf(is.text('the name of a model'), 'names of models'),
    'Models to ask, in order, when this one fails.',
    [],
  ),
  fallbackOn: setting(fallbackOnSchema, 'Models to ask instead of those of fallback, by the code of the failure.', {}),
  params: setting(params, 'How the parameters of a request change for this model.'),
  price: setting(price, 'What tokens cost. Unknown unless given.'),
  timeouts: setting(timeouts, 'How long each stage of an attempt may take.'),
  midStream: setting(
    is.oneOf(MID_STREAM_MODES),
    'What to do when a stream fails after its first value.',
    POLICY_DEFAULTS.midStream,
  ),
  canContinue: setting(is.flag(), 'Accepts an assistant prefix.', POLICY_DEFAULTS.canContinue),
  maxPromptTokens: setting(
    is.above0OrOff(),
    'A fallback to it is passed over where the prompt is longer.',
    POLICY_DEFAULTS.maxPromptTokens,
  ),
  includeUsage: setting(is.flag(), 'Asks for usage at the end of a chat stream.', POLICY_DEFAULTS.includeUsage),
});

import { z } from 'zod';
import type { Distribution } from '../../emulator/model/distribution.ts';
import { DIALECTS } from '../../emulator/model/dialects/dialects.ts';
import * as is from '../../policy/schema/leaves.ts';
import { setting, strict } from '../../policy/schema/leaves.ts';
import { SCENARIO_DEFAULTS } from './Scenario.ts';
import { recipe } from './recipeSchema.ts';
import type { Arrivals, Load, Phase, Scenario, StrategyInput, TraceCall, Upstream } from './Scenario.ts';

const distribution: z.ZodType<Distribution> = z.union(
  [
    is.finite(0),
    strict({
      median: is.above0(),
      sigma: is.finite(0),
      max: is.above0().optional(),
    }),
  ],
  { error: 'a number of 0 or more, or { median, sigma, max }' },
) as z.ZodType<Distribution>;

/** One recorded call. */
export const traceCall: z.ZodType<TraceCall> = strict({
  atMs: is.finite(0),
  model: setting(is.text('the name of a model'), 'Which model is asked.'),
  tenant: setting(is.text('the name of a tenant'), 'Who asks.'),
  priority: setting(is.text('the name of a priority'), 'How urgent it is.'),
  conversation: setting(is.text('the name of a conversation'), 'Which conversation it is a turn of.'),
  promptTokens: setting(is.finite(0), 'Tokens of the prompt.'),
  outputTokens: setting(is.above0(), 'Its output limit.'),
} satisfies Record<keyof TraceCall, unknown>);

const arrivals = z.discriminatedUnion(
  'kind',
  [
    strict({ kind: z.literal('constant'), perMinute: is.above0() }),
    strict({ kind: z.literal('poisson'), perMinute: is.above0() }),
    strict({ kind: z.literal('bursts'), size: is.whole(1), everyMs: is.above0() }),
    strict({
      kind: z.literal('daily'),
      perMinute: is.above0(),
      peak: setting(
        z
          .number({ error: 'a number from 1 to 2' })
          .min(1, { error: 'a number from 1 to 2' })
          .max(2, { error: 'a number from 1 to 2' }),
        'Rate at the peak, as a multiple of the mean.',
        1.5,
      ),
      peakAtMs: setting(is.finite(0), 'When the peak is.'),
      periodMs: setting(is.above0(), 'Length of one swing.', 86_400_000),
    }),
    strict({
      kind: z.literal('workers'),
      workers: is.whole(1),
      thinkMs: setting(distribution, 'Pause between two calls of one worker.', 0),
      calls: setting(is.whole(1), 'Calls of all of them together.'),
    }),
    strict({ kind: z.literal('trace'), calls: is.listOf(traceCall, 'calls, each with atMs', 1) }),
  ],
  { error: 'arrivals of the kind constant, poisson, bursts, daily, workers or trace' },
) as unknown as z.ZodType<Arrivals>;

const load = strict({
  arrivals,
  model: is.text('the name of a model'),
  tenant: setting(is.text('the name of a tenant'), 'Who asks.'),
  priority: setting(is.text('the name of a priority'), 'How urgent it is.'),
  promptTokens: setting(distribution, 'Tokens of the prompt.', SCENARIO_DEFAULTS.promptTokens),
  outputLimit: setting(is.whole(1), 'Output limit that the requests name.'),
  conversations: setting(strict({ share: is.share(), count: is.whole(1) }), 'Part of the calls that are turns.'),
  leavesAfterMs: setting(distribution, 'When users leave.'),
  deadlineMs: setting(is.above0(), 'Deadline of the calls, where it is not that of the policy.'),
  fromMs: setting(is.finite(0), 'When it begins.', 0),
  toMs: setting(is.above0(), 'When it ends.'),
} satisfies Record<keyof Load, unknown>) as z.ZodType<Load>;

const quota = {
  requestsPerMinute: setting(is.above0(), 'Requests a minute.'),
  burstRequests: setting(is.above0(), 'Most requests at once after a rest.'),
  tokensPerMinute: setting(is.above0(), 'Tokens a minute.'),
  burstTokens: setting(is.above0(), 'Most tokens at once after a rest.'),
  noiseShare: setting(is.ratio(), 'Part of the quota that others use up.', 0),
};

const answers = {
  headersMs: setting(distribution, 'From arrival to the head.', 0),
  firstTokenMs: setting(distribution, 'From arrival to the first content.', 50),
  tokenMs: setting(distribution, 'From one token to the next.', 5),
  tokens: setting(
    z.union([z.literal('max'), distribution], { error: 'a number of 0 or more, { median, sigma, max }, or max' }),
    'Tokens of an answer.',
    64,
  ),
  chunkTokens: setting(is.whole(1), 'Tokens in a chunk.', 1),
  reasoningTokens: setting(is.whole(0), 'Tokens of reasoning before the text.', 0),
};

const model = {
  ...quota,
  ...answers,
  maxConcurrent: setting(is.whole(1), 'Most requests at once.'),
  contextTokens: setting(is.above0(), 'Most tokens of a request.'),
  acceptsPrefix: setting(is.flag(), 'Whether an assistant prefix is gone on from.', true),
  reservedOutputTokens: setting(is.finite(0), 'Reserved where no output limit is named.', 256),
};

const faults = is.listOf(is.anything(), 'faults');
const change = strict({
  atMs: is.finite(0),
  account: setting(strict(quota), 'Limits of the account from then on.'),
  models: setting(is.named(strict(quota), 'models to limits'), 'Limits of models from then on.'),
});

const upstream = strict({
  ...model,
  models: setting(is.named(strict(model), 'models to their settings'), 'The models that there are.'),
  dialect: setting(is.oneOf(Object.keys(DIALECTS)), 'Headers and error bodies.', 'openai'),
  countRejected: setting(is.flag(), 'Whether what is refused counts.', true),
  settle: setting(is.oneOf(['reserved', 'usage']), 'What is done with reserved tokens.'),
  concurrencyStatus: setting(
    z.union([z.literal(429), z.literal(503)], { error: '429 or 503' }),
    'Status of a refusal by maxConcurrent.',
    429,
  ),
  script: setting(faults, 'Faults in order.'),
  randomFaults: setting(faults, 'Faults by chance.'),
  outages: setting(faults, 'Faults of all requests for some time.'),
  changes: setting(is.listOf(change, 'changes of limits'), 'How limits change.'),
}) as unknown as z.ZodType<Upstream>;

const phase = strict({
  name: is.text('the name of a phase'),
  fromMs: is.finite(0),
  toMs: is.above0(),
  model: setting(is.text('the name of a model'), 'The model that is asked.'),
} satisfies Record<keyof Phase, unknown>);

const named = { name: setting(is.text('a name'), 'Its name in the table.') };
const strategy = z.discriminatedUnion(
  'kind',
  [
    strict({ kind: z.literal('bare'), ...named }),
    strict({ kind: z.literal('sdk'), ...named, retries: setting(is.whole(0), 'Retries of the SDK.', 2) }),
    strict({
      kind: z.literal('fixed'),
      ...named,
      attempts: setting(is.whole(1), 'Attempts.', 5),
      delayMs: setting(is.finite(0), 'Pause between two.', 1000),
    }),
    strict({
      kind: z.literal('backoff'),
      ...named,
      attempts: setting(is.whole(1), 'Attempts.', 5),
      baseMs: setting(is.above0(), 'First wait.', 500),
      capMs: setting(is.above0(), 'Longest wait.', 8000),
      jitter: setting(is.oneOf(['none', 'full']), 'How waits are drawn.', 'none'),
      heedHints: setting(is.flag(), 'Whether hints are waited out.', false),
      fallback: setting(is.text('the name of a model'), 'Asked in the end.'),
    }),
    strict({ kind: z.literal('recipe'), ...named, ...recipe }),
    strict({
      kind: z.literal('sluice'),
      ...named,
      policy: setting(is.anything(), 'A policy of its own.'),
      tenants: setting(is.flag(), 'Whether calls say whose they are.', true),
    }),
  ],
  { error: 'a strategy of the kind bare, sdk, fixed, backoff, recipe or sluice' },
) as unknown as z.ZodType<StrategyInput & { name?: string }>;

export const scenarioSchema: z.ZodType<Scenario> = strict({
  name: is.text('the name of the scenario'),
  seed: setting(is.whole(0), 'Draws everything that is drawn.', SCENARIO_DEFAULTS.seed),
  forMs: is.above0(),
  load: is.listOf(load, 'loads', 1),
  upstreams: is.named(upstream, 'clients to providers'),
  networkMs: setting(distribution, 'One way, for each message.', SCENARIO_DEFAULTS.networkMs),
  policy: setting(is.anything(), 'The policy that Sluice runs.'),
  strategies: setting(is.listOf(strategy, 'strategies', 1), 'What is compared.'),
  phases: setting(is.listOf(phase, 'phases', 1), 'Parts with figures of their own.'),
  chunks: setting(is.oneOf(['ends', 'all']), 'Which chunks are simulated.', SCENARIO_DEFAULTS.chunks),
} satisfies Record<keyof Scenario, unknown>) as unknown as z.ZodType<Scenario>;

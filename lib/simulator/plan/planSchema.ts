import { z } from 'zod';
import * as is from '../../policy/schema/leaves.ts';
import { setting, strict } from '../../policy/schema/leaves.ts';
import { PLAN_DEFAULTS } from './PlanInput.ts';
import type { PlanInput, PlanSearch, PlanTarget, PlanTenantTarget } from './PlanInput.ts';

const name = (of: string): z.ZodType<string> => is.text(`the name of a ${of}`);

const ofCalls = {
  firstContentP50Ms: setting(is.above0(), 'Time to first content, p50, at most.'),
  firstContentP95Ms: setting(is.above0(), 'Time to first content, p95, at most.'),
  firstContentP99Ms: setting(is.above0(), 'Time to first content, p99, at most.'),
  answeredShare: setting(is.ratio(), 'Answers per call, at least.', PLAN_DEFAULTS.answeredShare),
} satisfies Record<keyof PlanTenantTarget, unknown>;

const target = strict({
  ...ofCalls,
  totalP95Ms: setting(is.above0(), 'Time to the end of the answer, p95, at most.'),
  rateLimitedShare: setting(is.ratio(), '429s per request sent, at most.'),
  costPerMonth: setting(is.above0(), 'Cost a month, at most.'),
  tenants: setting(is.named(strict(ofCalls), 'tenants to targets'), 'Of the calls of a tenant.'),
} satisfies Record<keyof PlanTarget, unknown>);

const RATES = ['requestsPerMinute', 'tokensPerMinute', 'burstRequests', 'burstTokens'] as const;

const pathError = 'the path of a setting of the policy, such as maxInFlight, or a list of its names';
const path = z.union(
  [
    z.string({ error: pathError }).min(1, { error: pathError }),
    z.array(z.union([z.string(), z.number()], { error: pathError }), { error: pathError }).min(1, { error: pathError }),
  ],
  { error: pathError },
);
const valueError = 'a number, a text, true or false';
const value = z.union([z.number(), z.string(), z.boolean()], { error: valueError });

const search = z.discriminatedUnion(
  'kind',
  [
    strict({
      kind: z.literal('quota'),
      rate: is.oneOf(RATES),
      client: setting(name('client'), 'Whose limit it is.'),
      model: setting(name('model'), 'Of which model.'),
      from: setting(is.whole(1), 'Least that is tried.'),
      to: setting(is.whole(1), 'Most that is tried.'),
    }),
    strict({
      kind: z.literal('deployments'),
      client: setting(name('client'), 'Which account there is more than once.'),
      from: setting(is.whole(1), 'Least that is tried.', 1),
      to: setting(is.whole(1), 'Most that is tried.', 16),
    }),
    strict({
      kind: z.literal('modelShare'),
      model: name('model'),
      cheaper: name('model'),
      from: setting(is.ratio(), 'Least that is tried.', 0),
      to: setting(is.ratio(), 'Most that is tried.', 1),
    }),
    strict({
      kind: z.literal('load'),
      from: setting(is.above0(), 'Least that is tried.', 0.1),
      to: setting(is.above0(), 'Most that is tried.', 10),
    }),
    strict({
      kind: z.literal('policy'),
      path,
      from: setting(is.finite(0), 'Least that is tried.'),
      to: setting(is.finite(0), 'Most that is tried.'),
      values: setting(is.listOf(value, 'values', 2), 'All that are tried.'),
      search: setting(is.oneOf(['smallest', 'largest', 'best']), 'Which of them is wanted.', 'best'),
    }),
  ],
  { error: 'a search of the kind quota, deployments, modelShare, load or policy' },
) as unknown as z.ZodType<PlanSearch>;

export const planSchema: z.ZodType<PlanInput> = strict({
  name: setting(is.text('a name'), 'What it is called.'),
  scenario: is.anything(),
  target,
  find: is.listOf(search, 'numbers to look for', 1),
  seeds: setting(is.whole(3), 'Runs of each candidate.', PLAN_DEFAULTS.seeds),
  precision: setting(is.fraction(), 'How far apart candidates are.', PLAN_DEFAULTS.precision),
  callsPerRun: setting(is.whole(100), 'Calls to which even loads are cut.', PLAN_DEFAULTS.callsPerRun),
} satisfies Record<keyof PlanInput, unknown>) as unknown as z.ZodType<PlanInput>;

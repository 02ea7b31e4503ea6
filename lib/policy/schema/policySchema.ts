import { z } from 'zod';
import { CONVERSATION_LANES_DEFAULTS } from '../../limits/ConversationLanes.ts';
import { RETRY_BUDGET_DEFAULTS } from '../../limits/RetryBudget.ts';
import { RETRY_RULE_DEFAULTS } from '../../limits/retryRules.ts';
import { POLICY_DEFAULTS } from '../policyDefaults.ts';
import type { PolicyInput, PrioritiesInput, PriorityInput, TenantInput } from '../PolicyInput.ts';
import { PRESET_NAMES } from '../presets.ts';
import { gatewaySchema } from './gatewaySchema.ts';
import * as is from './leaves.ts';
import { setting, strict } from './leaves.ts';
import { modelSchema } from './modelSchema.ts';
import { quotaSchema, rates } from './quotaSchema.ts';

const name = (what: string): z.ZodType<string> => is.text(`the name of a ${what}`);

const client = strict({
  baseURL: setting(is.text('an address'), 'Address of the API.'),
  apiKey: setting(is.text('a key'), 'Key of the account, best as ${NAME}.'),
  headers: setting(is.named(is.text('a value'), 'headers to values'), 'Headers of every request.'),
});

const tenant: z.ZodType<TenantInput> = strict({
  ...rates,
  maxInFlight: setting(is.wholeOrOff(1), 'Calls in flight at one time.', POLICY_DEFAULTS.tenant.maxInFlight),
  reservedInFlight: setting(
    is.whole(0),
    'Slots of maxInFlight that it can always have; lent while it is idle.',
    POLICY_DEFAULTS.tenant.reservedInFlight,
  ),
  weight: setting(is.above0(), 'Its part of what is short, next to those of others.', POLICY_DEFAULTS.tenant.weight),
});

const priority: z.ZodType<PriorityInput> = strict({
  maxInFlight: setting(is.wholeOrOff(1), 'Calls in flight at one time.', POLICY_DEFAULTS.priority.maxInFlight),
});

const prioritiesError = 'an object';
const priorities: z.ZodType<PrioritiesInput> = z
  .object(
    {
      order: setting(is.listOf(name('priority'), 'names of priorities', 1), 'The most urgent first.', [
        ...POLICY_DEFAULTS.priorityOrder,
      ]),
      levels: setting(is.named(priority, 'priorities to settings'), 'The same as settings under the name itself.'),
      ageingMs: setting(
        is.finiteOrOff(0),
        'After so long, times its distance from the first, a priority gets one turn in eight.',
        POLICY_DEFAULTS.ageingMs,
      ),
    },
    { error: prioritiesError },
  )
  .catchall(priority);

export const policySchema: z.ZodType<PolicyInput> = strict({
  preset: setting(is.oneOf(PRESET_NAMES), 'Settings to start from.'),
  clients: setting(is.named(client, 'names to clients'), 'Clients, for programs that make them from the policy.'),
  deadlineMs: setting(is.above0OrOff(), 'From the call to its first content.', POLICY_DEFAULTS.deadlineMs),
  totalMs: setting(is.above0OrOff(), 'From the call to the end of its answer.', POLICY_DEFAULTS.totalMs),
  maxInFlight: setting(is.wholeOrOff(1), 'Calls in flight at one time, all together.', POLICY_DEFAULTS.maxInFlight),
  maxAttempts: setting(is.wholeOrOff(1), 'Attempts of a call, over all models.', RETRY_RULE_DEFAULTS.maxAttempts),
  quota: setting(quotaSchema, 'What the provider allows.'),
  models: setting(is.named(modelSchema, 'models to settings'), 'Settings by model; default for those not listed.'),
  tenants: setting(is.named(tenant, 'tenants to settings'), 'Settings by tenant; default for those not listed.'),
  priorities: setting(priorities, 'How urgent calls are.'),
  retryBudget: setting(
    strict({
      ratio: setting(is.ratio(), 'What retries may add to recent traffic.', RETRY_BUDGET_DEFAULTS.ratio),
      minPerSecond: setting(is.finite(0), 'Retries that are always allowed.', RETRY_BUDGET_DEFAULTS.minPerSecond),
      windowMs: setting(is.above0(), 'How far back traffic counts.', RETRY_BUDGET_DEFAULTS.windowMs),
    }),
    'Bounds what retries add to the load of each model.',
  ),
  conversations: setting(
    strict({
      maxWaiting: setting(is.wholeOrOff(0), 'Turns that may wait.', CONVERSATION_LANES_DEFAULTS.maxWaiting),
      maxWaitMs: setting(is.finiteOrOff(0), 'Longest wait of a turn.', CONVERSATION_LANES_DEFAULTS.maxWaitMs),
      header: setting(is.headerName(), 'Sends the id upstream under this name.', POLICY_DEFAULTS.conversationHeader),
    }),
    'One turn at a time in each conversation.',
  ),
  spend: setting(
    strict({
      perTenantPerDay: setting(
        is.named(is.finiteOrOff(0), 'tenants to amounts'),
        'Most that a tenant may spend in a day of UTC; default for those not listed.',
        { default: null },
      ),
    }),
    'What may be spent, in the currency of prices.',
  ),
  store: setting(
    strict({
      onLoss: setting(
        is.oneOf(['share', 'refuse']),
        'What to do when the shared store is lost: go on with a share of each limit, or refuse. Else as the store says.',
      ),
      url: setting(is.text('an address'), 'Address of the store, for programs that connect by the policy.'),
    }),
    'State that processes share.',
  ),
  telemetry: setting(
    strict({
      captureContent: setting(
        is.flag(),
        'Whether prompts and completions go into telemetry.',
        POLICY_DEFAULTS.captureContent,
      ),
    }),
    'What is observed.',
  ),
  gateway: setting(gatewaySchema, 'Who may ask the gateway, and what they get.'),
});

import { ADMISSION_DEFAULTS } from '../limits/AdmissionOptions.ts';

const { maxInFlight, client, priorities, tenantMaxInFlight, reservedInFlight, weight } = ADMISSION_DEFAULTS;

/** Defaults of a policy as a whole. The others are those of the machines and timers. */
export const POLICY_DEFAULTS: {
  readonly deadlineMs: number;
  readonly totalMs: number;
  readonly maxInFlight: number;
  readonly client: string;
  readonly midStream: 'fail';
  readonly canContinue: boolean;
  readonly maxPromptTokens: number;
  readonly includeUsage: boolean;
  readonly tenant: { readonly maxInFlight: number; readonly reservedInFlight: number; readonly weight: number };
  readonly passShare: number;
  readonly exhaustedMs: number;
  readonly priorityOrder: readonly string[];
  readonly ageingMs: number;
  readonly priority: { readonly maxInFlight: number };
  readonly conversationHeader: string | null;
  readonly perTenantPerDay: number;
  readonly captureContent: boolean;
} = {
  deadlineMs: 60_000,
  totalMs: Infinity,
  maxInFlight,
  client,
  midStream: 'fail',
  canContinue: false,
  maxPromptTokens: Infinity,
  includeUsage: true,
  tenant: { maxInFlight: tenantMaxInFlight, reservedInFlight, weight },
  passShare: ADMISSION_DEFAULTS.passShare,
  exhaustedMs: ADMISSION_DEFAULTS.exhaustedMs,
  priorityOrder: priorities,
  ageingMs: ADMISSION_DEFAULTS.ageingMs,
  priority: { maxInFlight: Infinity },
  conversationHeader: null,
  perTenantPerDay: Infinity,
  captureContent: false,
};

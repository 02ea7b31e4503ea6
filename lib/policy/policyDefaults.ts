/** Defaults of a policy that nothing below it has. The others are those of the machines and timers. */
export const POLICY_DEFAULTS = {
  deadlineMs: 60_000,
  totalMs: Infinity as number,
  maxInFlight: Infinity as number,
  client: 'main',
  midStream: 'fail',
  canContinue: false,
  maxPromptTokens: Infinity as number,
  includeUsage: true,
  tenant: { maxInFlight: Infinity as number, reservedInFlight: 0, weight: 1 },
  priorityOrder: ['interactive', 'batch'],
  priority: { maxInFlight: Infinity as number },
  conversationHeader: null,
  perTenantPerDay: Infinity as number,
  onLoss: 'share',
  captureContent: false,
} as const;

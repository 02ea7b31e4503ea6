import fc from 'fast-check';
import type { PolicyInput } from '../../lib/policy/PolicyInput.ts';

type Input = fc.Arbitrary<PolicyInput>;

const some = <T extends object>(shape: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<Partial<T>> =>
  fc.record(shape, { requiredKeys: [] }) as fc.Arbitrary<Partial<T>>;

const amount = fc.integer({ min: 1, max: 1_000_000 });
const bound = fc.oneof(amount, fc.constant(null));
const ratio = fc.double({ min: 0.01, max: 0.99, noNaN: true });

const rates = fc
  .record({ rpm: fc.option(amount), burst: fc.option(amount), tpm: fc.option(amount) })
  .map(({ rpm, burst, tpm }) => ({
    ...(rpm !== null && { requestsPerMinute: rpm }),
    ...(rpm !== null && burst !== null && { burstRequests: burst }),
    ...(tpm !== null && { tokensPerMinute: tpm }),
  }));

const rules = some({
  settle: fc.constantFrom('usage' as const, 'reserved' as const),
  refundOn: some({
    rate_limited: fc.constantFrom('all' as const, 'none' as const),
    timeout: fc.constant('tokens' as const),
  }),
  arrivalMarginMs: fc.nat(500),
  cooldown: some({ unhintedMs: fc.nat(5000), jitter: ratio }),
  exhaustedMs: amount,
});

const layer = fc.tuple(rates, rules).map(([own, how]) => ({ ...own, ...how }));

const breaker = some({
  consecutiveFailures: bound,
  errorRatio: fc.oneof(ratio, fc.constant(null)),
  openMs: fc.integer({ min: 1, max: 200_000 }),
});

const concurrency = fc.oneof(
  some({
    max: fc.integer({ min: 64, max: 128 }),
    min: fc.integer({ min: 1, max: 16 }),
    maxOverMeasured: fc.constant(null),
  }),
  fc.record({ limit: amount }),
);

/** Any but the name that is refused everywhere. */
const parameter = fc.jsonValue().filter((value) => !JSON.stringify(value).includes('__proto__'));

const client = fc.constantFrom('main', 'azure', 'other');

const deployment = some({ client, model: fc.string({ minLength: 1 }), quota: layer, breaker, concurrency });

/** Fallbacks lead from `a` to `d` only, so that none leads back. */
const model = (later: readonly string[]) =>
  some({
    class: fc.constantFrom('cheap' as const, 'main' as const, 'expensive' as const, 'lastResort' as const),
    client,
    deployments: fc.array(deployment, { minLength: 1, maxLength: 3 }),
    quota: layer,
    retry: some({ attempts: fc.integer({ min: 1, max: 9 }), capMs: amount, maxHintMs: bound }),
    breaker,
    concurrency,
    fallback: fc.subarray([...later]),
    fallbackOn: some({ context_too_long: fc.subarray([...later]), overloaded: fc.subarray([...later]) }),
    params: some({
      omit: fc.array(fc.string({ minLength: 1 })),
      set: fc.dictionary(fc.constantFrom('p', 'q'), parameter),
    }),
    price: fc.record({ inputPerMTok: ratio, outputPerMTok: ratio }),
    timeouts: some({ headersMs: bound, firstContentMs: bound, responseMs: bound }),
    midStream: fc.constantFrom('fail' as const, 'restart' as const),
    canContinue: fc.boolean(),
    maxPromptTokens: bound,
  });

/** Policies that are right. */
export const policyInputs: Input = some({
  preset: fc.constantFrom('firstAid' as const, 'interactive' as const, 'batch' as const),
  clients: fc.constant({ main: { apiKey: 'k' }, azure: {}, other: { baseURL: 'http://127.0.0.1' } }),
  deadlineMs: bound,
  totalMs: bound,
  maxInFlight: fc.integer({ min: 50, max: 500 }),
  maxAttempts: bound,
  quota: some({
    account: fc.tuple(layer, some({ passShare: ratio })).map(([own, line]) => ({ ...own, ...line })),
    clients: fc.dictionary(client, layer),
  }),
  models: fc
    .record(
      { default: model([]), a: model(['b', 'c', 'd']), b: model(['c', 'd']), c: model(['d']), d: model([]) },
      { requiredKeys: ['default'] },
    )
    .map((each) => each),
  tenants: some({
    default: some({ maxInFlight: bound, weight: ratio }),
    acme: fc
      .tuple(rates, some({ reservedInFlight: fc.nat(20), weight: ratio }))
      .map(([own, more]) => ({ ...own, ...more })),
  }),
  priorities: fc.constantFrom(
    {},
    { ageingMs: null },
    { ageingMs: 500, order: ['x', 'y'] as string[], y: { maxInFlight: 3 } },
  ),
  retryBudget: some({ ratio, minPerSecond: fc.nat(3) }),
  conversations: some({ maxWaiting: bound, header: fc.constantFrom(null, 'x-conversation') }),
  spend: some({ perTenantPerDay: fc.dictionary(fc.constantFrom('default', 'acme'), bound) }),
  store: some({ onLoss: fc.constantFrom('share' as const, 'refuse' as const), url: fc.constant('redis://127.0.0.1') }),
  telemetry: some({ captureContent: fc.boolean() }),
  gateway: some({
    keys: fc.constantFrom([], ['a'.repeat(64), { hash: 'b'.repeat(64), tenant: 'acme' }]),
    midStream: fc.constantFrom('fail' as const, 'buffer' as const),
  }),
}) as Input;

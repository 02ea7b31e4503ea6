/** Cases that operators by hand have no part for, each with the reason. They are run through `createSluice`. */
export const BY_POLICY_ONLY: Readonly<Record<string, string>> = {
  'hol-blocking-01': 'small ones pass a large one within a bound: the fair queue of the admission',
  'hol-blocking-02': 'small ones pass a large one within a bound: the fair queue of the admission',
  'priority-starvation-01': 'priorities that age: the fair queue of the admission',
};

/** Steps about operators and sources themselves, which a policy would only stand around. */
export const OF_OPERATORS_ONLY: ReadonlySet<string> = new Set([
  'backoff',
  'child_process',
  'create_and_dispose',
  'custom_source',
  'for_await_stream',
  'gateway_stream',
  'pipe_calls',
  'stream',
]);

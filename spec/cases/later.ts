/** Cases whose subject comes with a later part, each with the reason. They are shown as pending, by name. */
export const LATER: Readonly<Record<string, string>> = {
  'hol-blocking-01': 'comes with the policy: passing within a bound is its fair queue',
  'hol-blocking-02': 'comes with the policy: passing within a bound is its fair queue',
  'priority-starvation-01': 'comes with the policy: ageing priorities are its fair queue',
  'double-retry-03': 'comes with the policy: what can be installed twice is the fetch of its client',
};

/** Forms without a spec so far. */
export const LATER_FORMS: Readonly<Record<string, string>> = {
  redis: 'comes with the store that processes share',
  trace: 'comes with telemetry',
  gateway: 'comes with the gateway',
};

import { randomUUID } from 'node:crypto';
import { nonEmpty, oneOf, positive, wholeNumber } from '../../core/checks.ts';
import { invalidOption } from '../../core/errors.ts';
import type { QuotaPort } from '../../core/ports.ts';
import { systemRuntime } from '../../core/runtime.ts';
import type { Runtime } from '../../core/runtime.ts';
import type { ConversationLanesOptions } from '../../limits/ConversationLanes.ts';
import { layersOf } from '../../limits/layersOf.ts';
import type { QuotaOptions } from '../../limits/layersOf.ts';
import type {
  LimitStore,
  SharedBreaker as SharedBreakerPort,
  SharedLanes,
  SharedQuotas as SharedQuotasPort,
  SharedSlots,
  SharedSpend,
  StoreChange,
  StoreLoss,
} from '../../limits/LimitStore.ts';
import type { QuotaRules } from '../../limits/QuotaOptions.ts';
import { LeasedSlots } from './LeasedSlots.ts';
import { scriptCallsOf } from './RedisClient.ts';
import type { RedisClient } from './RedisClient.ts';
import { Script } from './Script.ts';
import { SharedBreaker } from './SharedBreaker.ts';
import type { SharedBreakerOptions } from './SharedBreakerOptions.ts';
import { SharedConcurrency } from './SharedConcurrency.ts';
import type { SharedConcurrencyOptions, SharedConcurrencyPort } from './SharedConcurrency.ts';
import { SharedQuotas } from './SharedQuotas.ts';
import { SharedSpendDesk } from './SharedSpendDesk.ts';
import { SharedLanesDesk } from './SharedLanesDesk.ts';
import { StoreLink } from './StoreLink.ts';

export interface RedisStoreOptions {
  /** Begins every key. Not empty, without `{` and `}`. Default: `'sluice'`. */
  readonly prefix?: string | undefined;
  /** Longest time that one command may take; then the store counts as lost. Above 0. Default: 250. */
  readonly commandTimeoutMs?: number | undefined;
  /**
   * While the store is lost: `'share'`: this process goes on with its share of each quota; `'refuse'`: it refuses with
   * `limiter_unavailable`. Default: `'share'`.
   */
  readonly onStoreLoss?: StoreLoss | undefined;
  /**
   * While the store is lost and `onStoreLoss` is `'share'`: turns of conversations `'wait'` for it within their bounds, so
   * that none overlap; `'local'`: they go on in the order of this process. Default: `'wait'`.
   */
  readonly lanesOnStoreLoss?: 'wait' | 'local' | undefined;
  /**
   * How many processes there are at most. With it a process that never reached the store can take its share too. Whole,
   * at least 1. Default: as many as the store last knew of.
   */
  readonly processes?: number | undefined;
  /** While the store is lost and wanted: longest time between two looks whether it is back. Above 0. Default: 500. */
  readonly probeMs?: number | undefined;
  /** How long a process that was not heard of keeps its places in line and what it holds. Above 0. Default: 3,000. */
  readonly leaseMs?: number | undefined;
  /** Turns that begin within this time are given out ahead, in one answer. Above 0. Default: 20. */
  readonly aheadMs?: number | undefined;
  /**
   * Where many requests come, a process takes some more ahead of need and keeps them at most so long; one that comes
   * within that time finds room without asking. Never more than half of what there is. Above 0. Default: 100.
   */
  readonly sliceMs?: number | undefined;
  /** Hears when the store is lost and when it is back. What it throws is ignored. */
  readonly onChange?: ((change: StoreChange) => void) | undefined;
}

export const REDIS_STORE_DEFAULTS = {
  prefix: 'sluice',
  commandTimeoutMs: 250,
  onStoreLoss: 'share',
  lanesOnStoreLoss: 'wait',
  probeMs: 500,
  leaseMs: 3000,
  aheadMs: 20,
  sliceMs: 100,
} as const;

/** How long a process counts among those that share a quota. */
const MEMBER_MS = 60_000;
/** How long a quota that nobody uses is remembered: by then every bucket is full. */
const KEEP_MS = 86_400_000;

export interface RedisStore extends LimitStore {
  /**
   * The quota of that name, shared by all processes that name it: with the same options as `createQuota`, which every
   * process should give alike. Its `acquire` emits the same errors, and `limiter_unavailable` where the store is lost and
   * no share is known or allowed; `closed` after `close`. `snapshot` shows what this process last heard.
   * @throws SluiceError `invalid_option` for a wrong option.
   */
  quota(name: string, options: QuotaOptions): QuotaPort;
  /**
   * A quota of several routes that share layers, such as that of an account: one line for all, in which nobody waits behind
   * those who wait for a layer that is not theirs. `quota` is the case of one route. The same name is the same quota, by
   * these rules from now on.
   * @throws SluiceError `invalid_option` for a wrong rule.
   */
  quotas(name: string, rules: QuotaRules): SharedQuotasPort;
  /**
   * Places in a ceiling of so many for all processes that name it. Make it once in each process: it has one user.
   * @throws SluiceError `invalid_option` unless `limit` is a whole number of at least 1.
   */
  slots(name: string, limit: number): SharedSlots;
  /**
   * A concurrency limit of all processes that name it. Make it once in each process. Its `acquire` emits what that of
   * `createConcurrencyLimit` does, and `limiter_unavailable` and `closed` as that of `quota`.
   * @throws SluiceError `invalid_option` for a wrong option.
   */
  concurrency(name: string, options: SharedConcurrencyOptions): SharedConcurrencyPort;
  /**
   * A breaker of all processes that name it: what one finds out, all know with their next call at the latest, and all
   * together send no more probes than one would. Options given anew hold from then on. Its `acquire` emits what that of
   * `createBreaker` does, and `closed` after `close`.
   * @throws SluiceError `invalid_option` for a wrong option.
   */
  breaker(name: string, options?: SharedBreakerOptions): SharedBreakerPort;
  /**
   * Lanes of that name: in each conversation one turn runs at a time, of all processes that name them, in the order in
   * which they came. `acquire` emits what that of `createLanes` does, and `limiter_unavailable` and `closed` as that of
   * `quota`; who holds a place longer than its lease is sure hears `lane_lost`. Options given anew hold from then on.
   * @throws SluiceError `invalid_option` for a wrong option.
   */
  lanes(name: string, options?: ConversationLanesOptions): SharedLanes;
  /** What tenants spend a day, over all processes that name it. Used by `createSluice`. */
  spend(name: string): SharedSpend;
  /** Longest time that one decision of the store takes. */
  readonly answerMs: number;
  /** Takes another rule for what happens while the store is lost. `createSluice` gives it that of its policy. */
  setLoss(loss: StoreLoss): void;
  /** As the option of that name; returns what ends it. */
  onChange(listener: (change: StoreChange) => void): () => void;
  /** Ends those who wait with `closed`. The client stays open: it is yours. */
  close(): void;
}

/**
 * Limits that many processes share through Redis or Valkey, as ports for the operators: what is given a quota of one name
 * in one store draws on the same quota in every process.
 *
 * Each decision is one script, in one round trip, on the clock of the server. A request that has to wait gets its turn
 * after all that came earlier, in whatever process, and sleeps until then.
 *
 * Every command has an end. When one fails or takes too long the store is lost: `onChange` hears it, and each process goes
 * on with its share of the quotas, beginning with nothing, so that all together stay within them; or refuses. The first
 * command that works again brings it back.
 *
 * @param client - Of the package `redis` or `ioredis`: of one server, or of a cluster. It stays yours. Errors that it emits
 * are heard here, so that none is left unhandled; listen to them too if you want to know.
 * @param options - See {@link RedisStoreOptions}.
 * @throws SluiceError `invalid_option` for a wrong option, and for what is no such client.
 *
 * @example
 * ```ts
 * import { of } from 'rxjs';
 * import { createClient } from 'redis';
 * import { throttleByBucket } from 'sluice';
 * import { redisStore } from 'sluice/redis';
 *
 * const client = await createClient({ url: 'redis://localhost:6379' }).connect();
 * const store = redisStore(client, { onChange: ({ type, reason }) => console.warn(type, reason) });
 * const quota = store.quota('openai', { requestsPerMinute: 3000, burstRequests: 50 });
 *
 * of('answer').pipe(throttleByBucket(quota)).subscribe(console.log);
 * ```
 */
export function redisStore(
  client: RedisClient,
  options: RedisStoreOptions = {},
  runtime: Runtime = systemRuntime,
): RedisStore {
  const {
    prefix = REDIS_STORE_DEFAULTS.prefix,
    commandTimeoutMs = REDIS_STORE_DEFAULTS.commandTimeoutMs,
    onStoreLoss = REDIS_STORE_DEFAULTS.onStoreLoss,
    lanesOnStoreLoss = REDIS_STORE_DEFAULTS.lanesOnStoreLoss,
    probeMs = REDIS_STORE_DEFAULTS.probeMs,
    leaseMs = REDIS_STORE_DEFAULTS.leaseMs,
    aheadMs = REDIS_STORE_DEFAULTS.aheadMs,
    sliceMs = REDIS_STORE_DEFAULTS.sliceMs,
    processes,
    onChange,
  } = options;
  const times = {
    aheadMs: positive('aheadMs', aheadMs),
    sliceMs: positive('sliceMs', sliceMs),
    leaseMs: positive('leaseMs', leaseMs),
    memberMs: MEMBER_MS,
    keepMs: KEEP_MS,
  };
  keyPart('prefix', prefix);
  if (processes !== undefined) wholeNumber('processes', processes);
  const link = new StoreLink(
    scriptCallsOf(client),
    {
      commandTimeoutMs: positive('commandTimeoutMs', commandTimeoutMs),
      probeMs: positive('probeMs', probeMs),
      probeKey: `${prefix}:{probe}`,
      onStoreLoss: oneOf('onStoreLoss', onStoreLoss, ['share', 'refuse']),
    },
    runtime,
  );
  if (onChange) link.listen(onChange);
  const member = randomUUID();
  const script = Script.read('quotaBuckets.lua', 'quotaCooldowns.lua', 'quotaLine.lua', 'quota.lua');
  const quotasOf = new Map<string, SharedQuotas>();
  const breakersOf = new Map<string, SharedBreaker>();
  const lanesOf = new Map<string, SharedLanesDesk>();
  const onLoss = oneOf('lanesOnStoreLoss', lanesOnStoreLoss, ['wait', 'local']);
  const opened: { close(): void }[] = [];
  const keyOf = (name: string, kind: string): string => `${prefix}:{${keyPart('name', name)}}:${kind}`;
  const own = { member, processes, othersMs: probeMs };
  const opening = <T extends { close(): void }>(each: T): T => {
    opened.push(each);
    return each;
  };
  const slotsOf = (name: string, limit: number): LeasedSlots =>
    new LeasedSlots(limit, link, { ...own, ...times, name: keyOf(name, 'slots') });

  const quotas = (name: string, rules: QuotaRules): SharedQuotas => {
    let made = quotasOf.get(name);
    if (made) made.reload(rules);
    else {
      made = new SharedQuotas(rules, times, link, script, { ...own, name: keyOf(name, 'quota') });
      quotasOf.set(name, made);
      opened.push(made);
    }
    return made;
  };

  return {
    quota(name, quotaOptions) {
      const layers = layersOf(quotaOptions).map(([layer, rates]) => ({ ...rates, name: layer }));
      return quotas(name, quotaOptions).route(layers, { reportsTo: quotaOptions.reportsTo });
    },
    quotas,
    slots(name, limit) {
      return opening(slotsOf(name, limit));
    },
    concurrency(name, concurrencyOptions) {
      const slots = slotsOf(name, concurrencyOptions.limit);
      return opening(new SharedConcurrency(slots, concurrencyOptions, runtime));
    },
    breaker(name, breakerOptions = {}) {
      let made = breakersOf.get(name);
      if (made) made.reload(breakerOptions);
      else {
        const settings = { ...times, name, key: keyOf(name, 'breaker') };
        made = opening(new SharedBreaker(breakerOptions, link, settings));
        breakersOf.set(name, made);
      }
      return made;
    },
    lanes(name, bounds = {}) {
      let made = lanesOf.get(name);
      if (made) made.reload(bounds);
      else {
        made = opening(new SharedLanesDesk(bounds, link, { ...times, member, onLoss, name: keyOf(name, 'lanes') }));
        lanesOf.set(name, made);
      }
      return made;
    },
    spend(name) {
      return opening(new SharedSpendDesk(link, { member, name: keyOf(name, 'spend') }));
    },
    // One call may be under way when the next is wanted.
    answerMs: 2 * commandTimeoutMs,
    setLoss(loss) {
      link.loss = oneOf('onStoreLoss', loss, ['share', 'refuse']);
    },
    onChange: (listener) => link.listen(listener),
    close() {
      link.close();
      for (const each of opened) each.close();
    },
  };
}

/** Braces would move the hash tag, and with it the keys of one quota to different nodes of a cluster. */
function keyPart(option: string, value: string): string {
  if (/[{}]/.test(nonEmpty(option, value))) throw invalidOption(option, 'without { and }', value);
  return value;
}

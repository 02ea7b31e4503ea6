import type { CooldownOptions } from '../../limits/Cooldown.ts';

/**
 * One bucket of a shared quota. Everything is in whole microseconds of refill, so that Lua and TypeScript compute the
 * same: a size of 8 requests at 60 a minute is 8,000,000.
 */
export interface BucketRule {
  /** Names it among the buckets of its quota: `r:account` for requests of a layer, `t:account` for its tokens. */
  readonly key: string;
  readonly perMinute: number;
  /** How long it takes to fill. */
  readonly sizeUs: number;
  /** How long after it was taken something begins to come back. */
  readonly lagUs: number;
}

/** One way through a quota. */
export interface RouteRule {
  /** Names the pause that it shares with others. */
  readonly cooldown: string;
  /** Which of the call's buckets it takes from. */
  readonly buckets: readonly number[];
}

/** What holds for all routes of a quota. */
export interface SharedQuotaRules {
  readonly maxWaiting: number;
  readonly cooldown: { readonly [option in keyof CooldownOptions]-?: number };
  /** A turn taken up at most this late is charged to the time that was foreseen for it. */
  readonly graceUs: number;
  /** Turns that begin within this time are given out ahead. */
  readonly aheadUs: number;
  /** What was taken ahead of need is kept at most this long. */
  readonly sliceUs: number;
  /** Turns that one call plans at most. */
  readonly planMost: number;
  /** What a process waits for is forgotten when nothing was heard of it for this long. */
  readonly leaseUs: number;
  /** How long a process counts among those that share the quota. */
  readonly memberUs: number;
  /** How long a quota that is not used is remembered. */
  readonly keepMs: number;
}

/**
 * Where a charge stands in the buckets of its route, for undoing it: `[drained at, given back by then, charged in all]` of
 * each one.
 */
export type Marks = readonly number[];

/** What is asked about one route: of the call's routes that with the number in second place. */
export type QuotaOp =
  /** Take this, or a place in line if that is at most `limitUs` long. Takes up to `spare` more of the kind where there is room. */
  | readonly [
      'enter',
      route: number,
      id: string,
      requests: number,
      tokens: number,
      limitUs: number,
      spare: number,
      spareTokens: number,
    ]
  /** Is it the turn of this one? */
  | readonly ['look', route: number, id: string]
  | readonly ['leave', route: number, id: string]
  /** Give back what was taken and will not be used. */
  | readonly ['back', route: number, requests: number, tokens: number, ...marks: Marks]
  /** What was taken turned out dearer. */
  | readonly ['more', route: number, requests: number, tokens: number]
  /** It was sent only now: take it again. */
  | readonly ['again', route: number, requests: number, tokens: number, ...marks: Marks]
  /** What was left in the route's bucket `bucket`, so long ago, after the charge with that sum; -1: of no charge, and now. */
  | readonly ['report', route: number, bucket: number, remaining: number, agoUs: number, charged: number]
  | readonly ['hint', route: number, waitMs: number]
  | readonly ['rejected', route: number, agoMs: number]
  | readonly ['answered', route: number, trial: number]
  | readonly ['gaveUp', route: number, trial: number];

/** An operation before it is known which routes the call will name. */
export type RouteOp = QuotaOp extends infer Op
  ? Op extends readonly [infer Name, number, ...infer Rest]
    ? readonly [Name, ...Rest]
    : never
  : never;

export interface QuotaCall {
  /** Counts among those that share the quota. */
  readonly member: string;
  /** Whose the places in line are, and the beginning of their names. Another one after each loss of the store. */
  readonly process: string;
  /** The quota as this process last saw it, 0 if it never did: without it a lost one could not be told from a new one. */
  readonly known: number;
  /** Whether the process has somebody in line. */
  readonly waits: 0 | 1;
  /** From [0, 1): all randomness of this call. */
  readonly random: number;
  /** Each at most once. Their rates hold from now on. */
  readonly buckets: readonly BucketRule[];
  readonly routes: readonly RouteRule[];
  /**
   * `[others in us, used of each bucket in us ...]`, if this process used a share of its own until now, else empty. Where
   * nobody was heard of for so long, others may still do so for as long, and all buckets are empty until then; else those
   * of the call are charged what is left of what it used.
   */
  readonly alone: readonly number[];
  readonly ops: readonly QuotaOp[];
}

/** `[kind, ...]`, see {@link REPLY}. */
export type OpReply = readonly number[];

/** First number of an {@link OpReply}. */
export const REPLY = {
  /** Nothing to say. */
  done: 0,
  /** `[granted, in how many us, trial or 0, spare, ...marks, ...marks of the spare]` */
  granted: 1,
  /** `[wait, us, position or 0]` */
  wait: 2,
  /** `[full, us]`: no more may wait. */
  full: 3,
  /** `[late, us]`: longer than the limit. */
  late: 4,
  /** Not in line any more. */
  gone: 5,
  /** `[paused, ms]` */
  paused: 6,
} as const;

/** `[which, processes, waiting, pause of each route in ms, us until each bucket is full, reply to each op]` */
export type QuotaReply = readonly [
  known: number,
  processes: number,
  waiting: number,
  pausedMs: readonly number[],
  drainUs: readonly number[],
  replies: readonly OpReply[],
];

/** How lanes are shared; the same in all processes. */
export interface LanesRules {
  /** What a process has is passed on when nothing was heard of it for this long. */
  readonly leaseUs: number;
  /** After everything was lost no lane is given out for this long, so that whoever has one can say so. */
  readonly guardUs: number;
  /** How long lanes that nobody uses are remembered. */
  readonly keepMs: number;
}

/** `lane`: a digest of the conversation. `order`: the name of a place, unique, and higher for whoever came later. */
export type LaneOp =
  /** Hold the lane, or take a place in line. `supersede`: 1: everyone else's turn is over. */
  | readonly ['enter', lane: string, maxWaiting: number, supersede: 0 | 1]
  /** This process has this place, and holds the lane with this token, or 0: it waits. */
  | readonly ['again', lane: string, order: number, token: number]
  /** The place is not wanted any more, whether it waits or holds the lane. */
  | readonly ['leave', lane: string, order: number]
  /** Is there any news? */
  | readonly ['look'];

export interface LanesCall {
  readonly process: string;
  /**
   * Rises with each loss of the store. The first call with a new one names every place that the process has: those that are
   * not named are given up. Calls with an old one are late, and do nothing.
   */
  readonly epoch: number;
  /** The lanes as this process last saw them, 0 if it never did: without it lost ones could not be told from new ones. */
  readonly known: number;
  readonly ops: readonly LaneOp[];
}

/** Of the keys of the script, in order. */
export const LANES_KEYS = ['state', 'holders', 'line', 'places', 'news', 'leases', 'epochs'] as const;

/** `[kind, ...]`, see {@link LANE_REPLY}. */
export type LaneReply = readonly number[];

/** First number of a {@link LaneReply}. */
export const LANE_REPLY = {
  done: 0,
  /** `[holds, order, token]` */
  holds: 1,
  /** `[waits, order, position]` */
  waits: 2,
  /** `[full, us that the turn before it has run, waiting]` */
  full: 3,
  /** Somebody else holds the lane. */
  lost: 4,
} as const;

/** A place of the process: its turn has come, with this token; 0: it was superseded. */
export type LaneNews = readonly [order: number, token: number];

/**
 * `fresh`: 1: the process was not known, so that it had nothing. `places`: how many it has now, superseded ones that it has
 * not left included.
 */
export type LanesReply = readonly [
  known: number,
  fresh: 0 | 1,
  places: number,
  news: readonly LaneNews[],
  replies: readonly LaneReply[],
];

/** How places in a ceiling are shared; the same in all processes. */
export interface SlotsRules {
  /** What a process holds is forgotten when nothing was heard of it for this long. */
  readonly leaseUs: number;
  /** How long processes may go on by themselves after a lost store is back. */
  readonly othersUs: number;
  /** How long a process counts among those that share the ceiling. */
  readonly memberUs: number;
  /** How long a ceiling that is not used is remembered. */
  readonly keepMs: number;
}

/** What one process has, uses and wants. Always the whole of it: a call that was lost is made up for by the next one. */
export interface SlotsCall {
  /** Counts among those that share the ceiling. */
  readonly member: string;
  /** Whose the places are. Another one after each loss of the store. */
  readonly process: string;
  /** What it was called before; empty if nothing is left under that name. */
  readonly former: string;
  /** The ceiling as this process last saw it, 0 if it never did: without it a lost one could not be told from a new one. */
  readonly known: number;
  /** Whether the store was lost until now, and this process used a share of its own. */
  readonly returned: 0 | 1;
  readonly limit: number;
  /** Places it keeps: what it was given, less what it gives back. */
  readonly keep: number;
  /** Places in use. */
  readonly taken: number;
  /** Places that it would use now if it had them, besides those. */
  readonly wanted: number;
  /** Places that it takes besides where nobody wants them. */
  readonly spare: number;
}

/**
 * `given`: may be negative, where what was kept had been forgotten. `most`: how many this process may have while others
 * wait for some; -1 if none do. `owed`: more are its due, and come free as others end theirs.
 */
export type SlotsReply = readonly [known: number, processes: number, given: number, most: number, owed: 0 | 1];

import type { Exchange } from './Exchange.ts';
import type { ProviderApi } from './request.ts';

/** How far an answer had come. `'headers'`: before the head; `'tail'`: after the finish reason. */
export type AnswerPhase = 'headers' | 'first_content' | 'streaming' | 'tail' | 'response';

/** What the provider saw of one request. Times are milliseconds since the log began. */
export interface RequestRecord {
  readonly ordinal: number;
  readonly api: ProviderApi;
  readonly model: string | undefined;
  readonly conversation: string | undefined;
  readonly stream: boolean;
  /** What was taken of the limits on tokens: prompt and output limit; 0 unless it was let through. */
  readonly reservedTokens: number;
  readonly arrivedMs: number;
  /** When the whole answer had been written, or the client had left. */
  endedMs: number | undefined;
  status: number | undefined;
  /** Why it was refused, or the kind of fault that it got. */
  readonly refusal: string | undefined;
  readonly fault: string | undefined;
  /**
   * `'failed'`: an error status that a fault brought. `'cut'`: a fault ended it too early. `'aborted'`: the client left.
   * `'closed'`: it ran when the emulator was closed.
   */
  outcome: 'running' | 'answered' | 'refused' | 'failed' | 'cut' | 'aborted' | 'closed';
  phase: AnswerPhase;
  /** Content chunks and bytes of body that were written. */
  chunks: number;
  bytes: number;
  lastWriteMs: number | undefined;
  /** What the SDK's header says of its own retries. */
  readonly retryCount: number | undefined;
  /** Of an abort: milliseconds since something was last written, or since arrival. */
  abortedAfterMs: number | undefined;
  /** Headers that the log was told to keep. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The body, if the log was told to keep it. */
  readonly body?: unknown;
}

export interface GroupReport {
  readonly requests: number;
  readonly admitted: number;
  readonly answered: number;
  readonly aborted: number;
  readonly maxConcurrent: number;
  /** Ordinals in the order in which requests arrived, and in which they ended. */
  readonly arrivals: readonly number[];
  readonly completions: readonly number[];
}

export interface LogReport {
  readonly requests: number;
  readonly admitted: number;
  readonly answered: number;
  readonly running: number;
  readonly maxConcurrent: number;
  /** Answers with status 429: by refusal, and those of faults under `fault`. */
  readonly rateLimited: { readonly total: number } & Readonly<Record<string, number>>;
  readonly refusals: Readonly<Record<string, number>>;
  readonly faults: Readonly<Record<string, number>>;
  readonly statuses: Readonly<Record<string, number>>;
  readonly aborts: number;
  readonly abortsByPhase: Readonly<Record<string, number>>;
  readonly bytes: number;
  readonly models: Readonly<Record<string, GroupReport>>;
  readonly conversations: Readonly<Record<string, GroupReport>>;
  /** The latest requests, oldest first; `dropped` older ones are counted only. */
  readonly log: readonly RequestRecord[];
  readonly dropped: number;
}

interface Group {
  requests: number;
  admitted: number;
  answered: number;
  aborted: number;
  running: number;
  maxConcurrent: number;
  arrivals: number[];
  completions: number[];
}

/** What the provider saw, in bounded memory: the latest `maxRecords` requests, and counts of all. */
export class RequestLog {
  readonly #maxRecords: number;
  #records: RequestRecord[] = [];
  #dropped = 0;
  readonly #all = newGroup();
  readonly #models = new Map<string, Group>();
  readonly #conversations = new Map<string, Group>();
  readonly #counts = {
    rateLimited: {} as Record<string, number>,
    refusals: {} as Record<string, number>,
    faults: {} as Record<string, number>,
    statuses: {} as Record<string, number>,
    abortsByPhase: {} as Record<string, number>,
  };
  #rateLimited = 0;
  #bytes = 0;

  constructor(maxRecords: number) {
    this.#maxRecords = maxRecords;
  }

  arrived(
    exchange: Exchange,
    api: ProviderApi,
    atMs: number,
    kept: Pick<RequestRecord, 'retryCount' | 'headers' | 'body'>,
  ): RequestRecord {
    const { ordinal, model, conversation, stream, reservedTokens, refusal, fault } = exchange;
    const record: RequestRecord = {
      ordinal,
      api,
      model,
      conversation,
      stream,
      reservedTokens,
      arrivedMs: atMs,
      endedMs: undefined,
      status: undefined,
      refusal,
      fault,
      outcome: 'running',
      phase: 'headers',
      chunks: 0,
      bytes: 0,
      lastWriteMs: undefined,
      abortedAfterMs: undefined,
      ...kept,
    };
    this.#records.push(record);
    // Dropped a tenth at a time: dropping one at a time would move the whole array for each request.
    if (this.#records.length > this.#maxRecords * 1.1) this.#drop(this.#records.length - this.#maxRecords);
    if (refusal !== undefined) count(this.#counts.refusals, refusal);
    if (fault !== undefined) count(this.#counts.faults, fault);
    for (const group of this.#groupsOf(record))
      arriveIn(group, ordinal, exchange.verdict === 'admitted', this.#maxRecords);
    return record;
  }

  responded(record: RequestRecord, status: number): void {
    record.status = status;
    record.phase = record.stream ? 'first_content' : 'response';
    count(this.#counts.statuses, String(status));
    if (status !== 429) return;
    this.#rateLimited++;
    count(this.#counts.rateLimited, record.refusal ?? 'fault');
  }

  wrote(record: RequestRecord, bytes: number, atMs: number): void {
    record.bytes += bytes;
    record.lastWriteMs = atMs;
    this.#bytes += bytes;
  }

  /** The request is over; only the first call counts. */
  ended(record: RequestRecord, outcome: Exclude<RequestRecord['outcome'], 'running'>, atMs: number): void {
    if (record.outcome !== 'running') return;
    record.outcome = outcome;
    record.endedMs = atMs;
    if (outcome === 'aborted') {
      record.abortedAfterMs = atMs - (record.lastWriteMs ?? record.arrivedMs);
      count(this.#counts.abortsByPhase, record.phase);
    }
    for (const group of this.#groupsOf(record)) endIn(group, record, this.#maxRecords);
  }

  report(): LogReport {
    const all = this.#all;
    return {
      requests: all.requests,
      admitted: all.admitted,
      answered: all.answered,
      running: all.running,
      maxConcurrent: all.maxConcurrent,
      ...copyOf(this.#counts),
      rateLimited: { ...this.#counts.rateLimited, total: this.#rateLimited },
      aborts: all.aborted,
      bytes: this.#bytes,
      models: reportOf(this.#models),
      conversations: reportOf(this.#conversations),
      log: this.#records.map((record) => ({ ...record })),
      dropped: this.#dropped,
    };
  }

  #drop(some: number): void {
    this.#records = this.#records.slice(some);
    this.#dropped += some;
  }

  #groupsOf({ model, conversation }: RequestRecord): Group[] {
    const groups = [this.#all];
    if (model !== undefined) groups.push(groupOf(this.#models, model, this.#maxRecords));
    if (conversation !== undefined) groups.push(groupOf(this.#conversations, conversation, this.#maxRecords));
    return groups;
  }
}

function newGroup(): Group {
  return {
    requests: 0,
    admitted: 0,
    answered: 0,
    aborted: 0,
    running: 0,
    maxConcurrent: 0,
    arrivals: [],
    completions: [],
  };
}

function groupOf(groups: Map<string, Group>, name: string, most: number): Group {
  let group = groups.get(name);
  if (group === undefined) {
    group = newGroup();
    // Names beyond the bound share nothing and are not kept: callers choose them.
    if (groups.size < most) groups.set(name, group);
  }
  return group;
}

function arriveIn(group: Group, ordinal: number, admitted: boolean, most: number): void {
  group.requests++;
  if (admitted) group.admitted++;
  group.running++;
  group.maxConcurrent = Math.max(group.maxConcurrent, group.running);
  if (group.arrivals.length < most) group.arrivals.push(ordinal);
}

function endIn(group: Group, { ordinal, outcome }: RequestRecord, most: number): void {
  group.running--;
  if (outcome === 'answered') group.answered++;
  if (outcome === 'aborted') group.aborted++;
  if (group.completions.length < most) group.completions.push(ordinal);
}

function count(counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1;
}

function copyOf<T extends Record<string, Record<string, number>>>(counts: T): T {
  return Object.fromEntries(Object.entries(counts).map(([name, inner]) => [name, { ...inner }])) as T;
}

function reportOf(groups: ReadonlyMap<string, Group>): Record<string, GroupReport> {
  const out: [string, GroupReport][] = [];
  for (const [name, { running: _, arrivals, completions, ...rest }] of groups) {
    out.push([name, { ...rest, arrivals: [...arrivals], completions: [...completions] }]);
  }
  return Object.fromEntries(out);
}

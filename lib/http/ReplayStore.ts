import { defer, EMPTY, merge, throwError } from 'rxjs';
import type { Observable } from 'rxjs';
import { invalidOption, invalidRequest, SluiceError } from '../core/errors.ts';
import type { Runtime } from '../core/runtime.ts';
import type { AnswerPart } from '../operators/answerPart.ts';
import type { AnswerEvent } from './AnswerEvent.ts';
import { HttpFailure } from './httpFailure.ts';
import type { MessageOf } from './httpFailure.ts';
import type { ReplayableSnapshot, ReplayRequest, Replays } from './Replays.ts';
import { readEventId, ReplayLog } from './ReplayLog.ts';
import { ReplayRun } from './ReplayRun.ts';

export interface ReplaySettings {
  readonly keepMs: number;
  readonly maxBytes: number;
  readonly maxStreams: number;
  readonly messageOf: MessageOf | undefined;
  readonly newName: () => string;
  readonly runtime: Runtime;
}

type Ask = () => Observable<AnswerPart | AnswerEvent>;

/** Where in which stream a client goes on; `undefined`: in a new one. */
interface Place {
  readonly run: ReplayRun;
  readonly seen: number;
}

const LONGEST_KEY = 200;

/** All streams of a {@link replayable}. The oldest stand first. */
export class ReplayStore implements Replays {
  readonly #settings: ReplaySettings;
  readonly #runs = new Map<string, ReplayRun>();
  readonly #byKey = new Map<string, ReplayRun>();
  /** Streams that were told to the end and are not kept: the number of the last event of each, by its owner and name. */
  readonly #ended = new Map<string, number>();
  #bytes = 0;
  #closed = false;

  constructor(settings: ReplaySettings) {
    this.#settings = settings;
  }

  open(request: ReplayRequest, ask: Ask): Observable<AnswerEvent> {
    return defer(() => {
      const place = this.#find(request);
      return place ? this.#read(place) : this.#start(request, ask);
    });
  }

  resume(request: ReplayRequest): Observable<AnswerEvent> {
    return defer(() => {
      const place = this.#find(request);
      const over = !isNamed(request.lastEventId) && place?.run.log.over === true;
      return place && !over ? this.#read(place) : throwError(() => nothingMore());
    });
  }

  stop(request: ReplayRequest): boolean {
    const { lastEventId } = request;
    const position = typeof lastEventId === 'string' ? readEventId(lastEventId) : undefined;
    const run = position ? this.#owned(this.#runs.get(position.name), request) : this.#keyed(request);
    if (run === undefined || run.log.over) return false;
    run.fail(new SluiceError('aborted', 'the client stopped the answer'));
    return true;
  }

  snapshot(): ReplayableSnapshot {
    let running = 0;
    for (const run of this.#runs.values()) if (!run.log.over) running++;
    return { streams: this.#runs.size, running, bytes: this.#bytes };
  }

  close(): void {
    this.#closed = true;
    for (const run of [...this.#runs.values()]) {
      run.fail(closed());
      run.release();
      this.#forget(run);
    }
    this.#ended.clear();
  }

  /** @throws HttpFailure 204 or 410 for an id that leads nowhere. */
  #find(request: ReplayRequest): Place | undefined {
    const { lastEventId } = request;
    if (!isNamed(lastEventId)) {
      const run = this.#keyed(request);
      if (run === undefined) return undefined;
      if (!run.log.reaches(0)) throw gone();
      return { run, seen: 0 };
    }
    const position = typeof lastEventId === 'string' ? readEventId(lastEventId) : undefined;
    if (position === undefined) throw gone();
    const { name, seen } = position;
    const run = this.#owned(this.#runs.get(name), request);
    const over = run ? run.log.over && run.log.last === seen : this.#ended.get(endedKey(name, request.owner)) === seen;
    if (over) throw nothingMore();
    if (!run?.log.reaches(seen)) throw gone();
    return { run, seen };
  }

  #keyed(request: ReplayRequest): ReplayRun | undefined {
    const key = fullKey(request);
    return key === undefined ? undefined : this.#byKey.get(key);
  }

  #owned(run: ReplayRun | undefined, { owner }: ReplayRequest): ReplayRun | undefined {
    return run?.owner === owner ? run : undefined;
  }

  #read({ run, seen }: Place): Observable<AnswerEvent> {
    return run.read(seen);
  }

  #start(request: ReplayRequest, ask: Ask): Observable<AnswerEvent> {
    if (this.#closed) throw closed();
    const { maxStreams, newName } = this.#settings;
    if (this.#runs.size >= maxStreams && !this.#evict()) {
      const message = `${maxStreams} streams are being answered already`;
      throw new SluiceError('queue_full', message, { limit: maxStreams });
    }
    const key = fullKey(request);
    const log = new ReplayLog(validName(newName()));
    const run = new ReplayRun(log, { owner: request.owner, key }, this.#settings, {
      added: (grown, bytes) => this.#added(grown, bytes),
      forgotten: (idle) => this.#forget(idle),
    });
    this.#runs.set(log.name, run);
    if (key !== undefined) this.#byKey.set(key, run);
    return startedBy(run, ask);
  }

  #added(run: ReplayRun, bytes: number): void {
    if (!this.#runs.has(run.log.name)) return;
    this.#bytes += bytes;
    const { maxBytes } = this.#settings;
    while (this.#bytes > maxBytes && this.#evict());
    if (this.#bytes > maxBytes) this.#bytes -= run.log.drop(this.#bytes - maxBytes);
  }

  /** Makes room by the oldest stream that has ended and is not being read. @returns Whether there was one. */
  #evict(): boolean {
    for (const run of this.#runs.values()) {
      if (!run.log.over || run.readers > 0) continue;
      run.release();
      this.#forget(run);
      return true;
    }
    return false;
  }

  #forget(run: ReplayRun): void {
    const { name, bytes, over, last } = run.log;
    if (!this.#runs.delete(name)) return;
    this.#bytes -= bytes;
    if (run.key !== undefined) this.#byKey.delete(run.key);
    if (!over) return;
    this.#ended.set(endedKey(name, run.owner), last);
    const [oldest] = this.#ended.keys();
    if (this.#ended.size > this.#settings.maxStreams && oldest !== undefined) this.#ended.delete(oldest);
  }
}

/** The first reader is there before the call begins, so that it hears of everything. */
function startedBy(run: ReplayRun, ask: Ask): Observable<AnswerEvent> {
  const start$ = defer(() => {
    run.start(defer(ask));
    return EMPTY;
  });
  return merge(run.read(0), start$);
}

function isNamed(id: ReplayRequest['lastEventId']): boolean {
  return id !== undefined && id !== null && id !== '';
}

const nothingMore = (): HttpFailure => new HttpFailure(204, 'nothing follows', undefined);

const gone = (): HttpFailure => {
  const message = 'this stream is not known, or not any more';
  return new HttpFailure(410, message, {
    error: { message, type: 'local', code: 'stream_unknown', param: null },
  });
};

const closed = (): SluiceError => new SluiceError('closed', 'streams are being closed');

function endedKey(name: string, owner: string | undefined): string {
  return `${name} ${owner ?? ''}`;
}

/** One name for the key and its owner, so that no one meets the streams of another. */
function fullKey({ key, owner }: ReplayRequest): string | undefined {
  if (key === undefined || key === null) return undefined;
  if (typeof key !== 'string' || key === '' || key.length > LONGEST_KEY) {
    throw invalidRequest('key', `a string of 1 to ${LONGEST_KEY} characters`, key);
  }
  return JSON.stringify([owner ?? null, key]);
}

function validName(name: string): string {
  if (typeof name === 'string' && /^[\w-]{1,64}$/.test(name)) return name;
  throw invalidOption('newName', 'a function that returns 1 to 64 letters, digits, - or _', name);
}

import type { ServerResponse } from 'node:http';
import type { Subscription } from 'rxjs';
import type { SluiceEvent } from '../../core/events.ts';
import { startTimer } from '../../core/runtime.ts';
import type { Cancel } from '../../core/runtime.ts';
import { LiveBoard } from './LiveBoard.ts';
import type { LivePlace } from './LiveBoard.ts';
import type { LiveSettings } from './LivePageOptions.ts';
import type { LiveSource } from './LiveSource.ts';
import { LiveViewer } from './LiveViewer.ts';

/** Follows the calls of a client for as long as somebody looks, and tells all viewers the same, at one pace. */
export class LiveFeed {
  readonly #source: LiveSource;
  readonly #settings: LiveSettings;
  readonly #viewers = new Set<LiveViewer>();
  #watch: { readonly board: LiveBoard; readonly events: Subscription } | undefined;
  #place: LivePlace | undefined;
  #cancel: Cancel | undefined;
  #unwatchedSinceMs: number;
  #closed = false;

  constructor(source: LiveSource, settings: LiveSettings) {
    this.#source = source;
    this.#settings = settings;
    this.#unwatchedSinceMs = settings.runtime.clock.now();
    if (settings.follow === 'always') this.#follow();
  }

  /** Whether calls are being followed. */
  get following(): boolean {
    return this.#watch !== undefined;
  }

  get viewers(): number {
    return this.#viewers.size;
  }

  /** `false` if there is no room, or nothing to see any more. */
  join(response: ServerResponse): boolean {
    if (this.#closed || this.#viewers.size >= this.#settings.maxViewers) return false;
    this.#stopIfLongUnwatched(this.#settings.runtime.clock.now());
    const viewer = new LiveViewer(response);
    this.#viewers.add(viewer);
    response.once('close', () => this.#left(viewer));
    viewer.hello(this.#hello());
    if (this.#cancel === undefined) {
      this.#place = this.#follow().place;
      this.#next();
    }
    return true;
  }

  close(): void {
    this.#closed = true;
    for (const viewer of this.#viewers) viewer.end();
    this.#stop();
  }

  #left(viewer: LiveViewer): void {
    this.#viewers.delete(viewer);
    if (this.#viewers.size > 0) return;
    this.#cancel?.();
    this.#cancel = undefined;
    this.#unwatchedSinceMs = this.#settings.runtime.clock.now();
    this.#stopIfLongUnwatched(this.#unwatchedSinceMs);
  }

  #follow(): LiveBoard {
    if (this.#watch !== undefined) return this.#watch.board;
    const board = new LiveBoard(this.#settings.runtime.clock, () => this.#source.snapshot(), this.#settings);
    const events = this.#source.events$.subscribe((event) => this.#hear(board, event));
    this.#watch = { board, events };
    return board;
  }

  #hear(board: LiveBoard, event: SluiceEvent): void {
    // Nothing of a page may break a call: an exception here would be thrown from within the client.
    try {
      board.hear(event);
    } catch {
      this.#stop();
    }
    if (this.#viewers.size === 0) this.#stopIfLongUnwatched(event.atMs);
  }

  /** Asked with each event, so that no timer keeps the process alive for those that have left. */
  #stopIfLongUnwatched(nowMs: number): void {
    const { follow, lingerMs } = this.#settings;
    if (this.#viewers.size > 0 || follow === 'always') return;
    if (nowMs - this.#unwatchedSinceMs >= lingerMs) this.#stop();
  }

  #stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#watch?.events.unsubscribe();
    this.#watch = undefined;
  }

  #next(): void {
    const { runtime, frameMs } = this.#settings;
    this.#cancel = startTimer(runtime, frameMs, () => {
      this.#next();
      this.#frame();
    });
  }

  #frame(): void {
    const board = this.#follow();
    const data = JSON.stringify(board.frame(this.#place));
    this.#place = board.place;
    let hello: string | undefined;
    const nowMs = this.#settings.runtime.clock.now();
    for (const viewer of this.#viewers) viewer.frame(nowMs, data, () => (hello ??= this.#hello()));
  }

  #hello(): string {
    const { title, frameMs } = this.#settings;
    return JSON.stringify({ title, frameMs, ...this.#follow().frame() });
  }
}

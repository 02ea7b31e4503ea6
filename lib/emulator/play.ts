import type { ServerResponse } from 'node:http';
import type { Runtime } from '../core/runtime.ts';
import { startTimer } from '../core/runtime.ts';
import { encodeStep } from './model/steps.ts';
import type { ProviderStep } from './model/steps.ts';

/** Hears what was done. */
export interface PlayListener {
  head(status: number): void;
  /** `bytes` of body were handed over for this step. */
  wrote(step: ProviderStep, bytes: number): void;
  /** Bytes that wait for the client to read them. */
  buffered(bytes: number): void;
  /** The last step was played. */
  ended(how: 'answered' | 'cut' | 'hangs'): void;
}

/** A step that is due within this time is taken now: timers have a grain of one millisecond. */
const GRAIN_MS = 1;
/** Steps of one instant that are written before other connections get their turn. */
const MOST_AT_ONCE = 64;

/**
 * Plays the steps of an answer in real time: one timer at most, none while the client does not read. Returns what stops
 * it.
 */
export function play(
  steps: Iterator<ProviderStep, void>,
  response: ServerResponse,
  runtime: Runtime,
  listener: PlayListener,
): () => void {
  const arrivedMs = runtime.clock.now();
  let pending: ProviderStep | undefined;
  let cancelTimer = (): void => {};
  let stopped = false;
  let headHeld = false;
  /** When the last verbatim write was due. */
  let splitMs = Infinity;

  /** Node sends the head with the first write; where that is later, the head must not wait for it. */
  const sendHead = (): void => {
    if (headHeld) response.flushHeaders();
    headHeld = false;
  };

  const pump = (): void => {
    for (let i = 0; i < MOST_AT_ONCE; i++) {
      if (stopped) return;
      const step = pending ?? steps.next().value;
      if (step === undefined) return;
      pending = step;
      const waitMs = step.atMs - (runtime.clock.now() - arrivedMs);
      if (waitMs > GRAIN_MS) {
        sendHead();
        cancelTimer = startTimer(runtime, waitMs, pump);
        return;
      }
      if (step.kind === 'bytes') {
        // The reader must see the splits also where both are late: it gets a turn between two writes.
        const split = step.atMs > splitMs;
        splitMs = split ? Infinity : step.atMs;
        if (split) break;
      }
      pending = undefined;
      if (!take(step)) return;
    }
    cancelTimer = startTimer(runtime, 0, pump);
  };

  /** Whether the next step may follow at once. */
  const take = (step: ProviderStep): boolean => {
    switch (step.kind) {
      case 'head':
        response.writeHead(step.status, step.headers);
        headHeld = true;
        listener.head(step.status);
        return true;
      case 'end':
        listener.ended('answered');
        response.end();
        return false;
      case 'reset':
        listener.ended('cut');
        response.socket?.resetAndDestroy();
        return false;
      case 'hang':
        sendHead();
        listener.ended('hangs');
        return false;
      default:
        return write(step);
    }
  };

  const write = (step: ProviderStep): boolean => {
    const bytes = encodeStep(step);
    if (bytes === undefined || bytes.length === 0) return true;
    headHeld = false;
    const flows = response.write(bytes);
    listener.wrote(step, typeof bytes === 'string' ? Buffer.byteLength(bytes) : bytes.length);
    if (flows) return true;
    listener.buffered(response.writableLength);
    response.once('drain', pump);
    return false;
  };

  pump();
  return () => {
    stopped = true;
    cancelTimer();
  };
}

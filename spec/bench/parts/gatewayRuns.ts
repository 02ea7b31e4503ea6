import { setTimeout as sleep } from 'node:timers/promises';
import type { HttpLoad } from './HttpLoad.ts';

export const FRAMES = 64;
export const FRAME_MS = 20;
/** The latest that a frame may be. */
export const LATE_MS = 50;

/** Medians of one request after another, each way in turn, so that a busy neighbour slows all of them. */
export async function medianTimes(loads: readonly HttpLoad[], stream: boolean, rounds: number): Promise<number[]> {
  const times = loads.map((): number[] => []);
  for (let round = 0; round < rounds; round++) {
    for (const [at, load] of loads.entries()) {
      const { status, sentMs, endMs, eventsMs } = await load.ask(stream);
      if (status !== 200) throw new Error(`answered with ${status}`);
      // The first event has the role alone.
      times[at]?.push((stream ? (eventsMs[1] ?? NaN) : endMs) - sentMs);
    }
  }
  return times.map(median);
}

/** Requests a second by `atOnce` that ask again and again. */
export async function requestsPerSecond(load: HttpLoad, atOnce: number, forMs: number): Promise<number> {
  const startMs = performance.now();
  let answered = 0;
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (performance.now() - startMs < forMs) {
        if ((await load.ask(false)).status === 200) answered++;
      }
    }),
  );
  return (answered / (performance.now() - startMs)) * 1_000;
}

/** Asks until the code that answers is compiled. */
export async function warmUp(load: HttpLoad, stream: boolean, requests: number, atOnce: number): Promise<void> {
  let left = requests;
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (left-- > 0) await load.ask(stream);
    }),
  );
}

/** Whether `count` streams at once come whole, and no frame of them late. */
export async function sustains(load: HttpLoad, count: number): Promise<boolean> {
  const rampMs = FRAMES * FRAME_MS;
  const streams = Array.from({ length: count }, async (_, at) => {
    await sleep((at * rampMs) / count);
    return load.ask(true).then(
      ({ status, eventsMs }) => status === 200 && eventsMs.length >= FRAMES + 2 && lateness(eventsMs) <= LATE_MS,
      () => false,
    );
  });
  return (await Promise.all(streams)).every((kept) => kept);
}

/** Of the frame that was latest, against the pace from the first one on. */
function lateness(eventsMs: readonly number[]): number {
  const [, first = NaN] = eventsMs;
  let late = 0;
  for (let at = 1; at <= FRAMES; at++) {
    late = Math.max(late, (eventsMs[at] ?? NaN) - first - (at - 1) * FRAME_MS);
  }
  return late;
}

/** The most streams at once that are sustained, within a tenth; each count gets `tries`. */
export async function mostStreams(load: HttpLoad, from: number, tries: number): Promise<number> {
  const holds = async (count: number): Promise<boolean> => {
    for (let at = 0; at < tries; at++) {
      if (await sustains(load, count)) return true;
      await sleep(200);
    }
    return false;
  };
  let most = 0;
  let tooMany = from;
  while (await holds(tooMany)) {
    most = tooMany;
    tooMany = Math.ceil(tooMany * 1.5);
  }
  while (tooMany - most > Math.max(1, most / 10)) {
    const between = Math.floor((most + tooMany) / 2);
    if (await holds(between)) most = between;
    else tooMany = between;
  }
  return most;
}

export function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? NaN;
}

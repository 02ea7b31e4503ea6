import type OpenAI from 'openai';
import { lastValueFrom, of, range } from 'rxjs';
import {
  chat,
  concatByConversation,
  createLanes,
  inConversation,
  isSluiceError,
  retryWithJitter,
} from '../../../lib/index.ts';
import type { LanesPort, Runtime } from '../../../lib/index.ts';
import type { EmulatorOptions, RequestRecord } from '../../../lib/emulator/index.ts';
import { heapInUse } from '../../helpers/heap.ts';
import type { Reporting } from './fullSpeed.ts';

/** One request in ten fails, so that turns have retries. */
export const talkative: EmulatorOptions = {
  firstTokenMs: 4,
  tokenMs: 2,
  tokens: 6,
  models: { m: {}, long: { tokens: 100_000, tokenMs: 5 } },
  recordBodies: true,
  randomFaults: [{ kind: 'error', error: 'server_error', probability: 0.1 }],
};

export interface Talks {
  readonly turns: { readonly answered: number; readonly failed: number; readonly cancelled: number };
  /** Requests that came before the emulator had ended the one before them, which the client had not left. */
  readonly overlaps: number;
  /** Requests that it saw come before the close of a connection that the client had just left, and how long before. */
  readonly overtaken: number;
  readonly overtakenByMs: number;
  /** Most requests of all conversations that it saw at once. */
  readonly mostInAll: number;
  /** Conversations whose requests arrived in the order of their turns. */
  readonly inOrder: number;
  /** Requests of turns that were cancelled before it was their turn. */
  readonly sentThough: number;
  /** Turns that were sent while the turn before them was being unsubscribed from. */
  readonly sentAtOnce: number;
  readonly remembered: number;
}

/**
 * Conversations whose turns are all asked for at once. Of every four turns, one is cancelled in mid-stream and one before
 * it begins.
 */
export async function talk(
  openai: OpenAI,
  emulator: Reporting,
  runtime: Runtime,
  conversations: number,
  turns: number,
): Promise<Talks> {
  const lanes = createLanes({ maxWaiting: Infinity, maxWaitMs: Infinity }, runtime);
  const count = { answered: 0, failed: 0, cancelled: 0 };
  let sentAtOnce = 0;
  const ends: Promise<void>[] = [];

  for (let c = 0; c < conversations; c++) {
    let cancelling = false;
    for (let turn = 0; turn < turns; turn++) {
      const leaves = turn % 4 === 1;
      const request = {
        model: leaves ? 'long' : 'm',
        user: `c-${c}`,
        messages: [{ role: 'user' as const, content: String(turn) }],
      };
      const onEvent = ({ type }: { type: string }): void => {
        if (type === 'attempt.started' && cancelling) sentAtOnce++;
      };
      const source = chat(openai, request, { runtime, onEvent }).pipe(
        retryWithJitter({ attempts: 10, baseMs: 1, capMs: 5, maxHintMs: Infinity, runtime }),
        inConversation(lanes, `c-${c}`, { runtime }),
      );
      ends.push(
        new Promise((resolve) => {
          const end = (outcome: keyof typeof count): void => {
            count[outcome]++;
            resolve();
          };
          let values = 0;
          const subscription = source.subscribe({
            next() {
              if (!leaves || ++values < 3) return;
              cancelling = true;
              subscription.unsubscribe();
              cancelling = false;
              end('cancelled');
            },
            error: () => end('failed'),
            complete: () => end('answered'),
          });
          if (turn % 4 === 3) {
            setImmediate(() => {
              subscription.unsubscribe();
              end('cancelled');
            });
          }
        }),
      );
    }
  }
  await Promise.all(ends);

  const { log, maxConcurrent } = await emulator.report();
  const byConversation = new Map<string, RequestRecord[]>();
  for (const record of log) {
    const { conversation = '' } = record;
    byConversation.set(conversation, [...(byConversation.get(conversation) ?? []), record]);
  }
  const sent = [...byConversation.values()].map((records) => records.map(turnOf));
  const pairs = [...byConversation.values()].flatMap((records) =>
    records.slice(1).map((next, at) => [records[at]!, next] as const),
  );
  const early = pairs
    .map(([{ endedMs = Infinity, outcome }, { arrivedMs }]) => ({ outcome, byMs: endedMs - arrivedMs }))
    .filter(({ byMs }) => byMs > 0);
  const overtaken = early.filter(({ outcome }) => outcome === 'aborted').map(({ byMs }) => byMs);
  return {
    turns: count,
    overlaps: early.length - overtaken.length,
    overtaken: overtaken.length,
    overtakenByMs: Math.max(0, ...overtaken),
    mostInAll: maxConcurrent,
    inOrder: sent.filter((some) => some.every((turn, at) => at === 0 || turn >= some[at - 1]!)).length,
    sentThough: sent.flat().filter((turn) => turn % 4 === 3).length,
    sentAtOnce,
    remembered: lanes.snapshot().conversations,
  };
}

function turnOf({ body }: RequestRecord): number {
  const { messages } = body as { readonly messages: readonly { readonly content: string }[] };
  return Number(messages[0]?.content);
}

export interface Forgotten {
  /** Bytes of heap in use, more than before. */
  readonly heapGrowth: number;
  readonly remembered: number;
}

/** One turn in each of many conversations, by both operators, without a provider: only what they keep can be left. */
export async function forgetSilent(conversations: number): Promise<Forgotten> {
  const lanes = createLanes();
  const ask = (lane: LanesPort, from: number, to: number): void => {
    for (let c = from; c < to; c++)
      of(c)
        .pipe(inConversation(lane, `conversation-${c}`))
        .subscribe();
  };
  ask(lanes, 0, 1000);
  const concat = (count: number) =>
    lastValueFrom(
      range(0, count).pipe(
        concatByConversation(
          (c) => `conversation-${c}`,
          (c) => of(c),
        ),
      ),
    );
  await concat(1000);
  const before = await heapInUse();
  ask(lanes, 0, conversations);
  await concat(conversations);
  return { heapGrowth: (await heapInUse()) - before, remembered: lanes.snapshot().conversations };
}

/** One answered call in each of many conversations. */
export async function forgetAnswered(openai: OpenAI, conversations: number): Promise<Forgotten> {
  const lanes = createLanes();
  let next = 0;
  const work = async (until: number): Promise<void> => {
    while (next < until) {
      const conversation = `conversation-${next++}`;
      const messages = [{ role: 'user' as const, content: 'Hello' }];
      await chat(openai, { model: 'm', messages, user: conversation })
        .pipe(retryWithJitter({ attempts: 10, baseMs: 1, capMs: 5 }), inConversation(lanes, conversation))
        .forEach(() => {})
        .catch((error: unknown) => {
          if (!isSluiceError(error)) throw error;
        });
    }
  };
  const all = (until: number) => Promise.all(Array.from({ length: 50 }, () => work(until)));
  await all(1000);
  const before = await heapInUse();
  await all(1000 + conversations);
  return { heapGrowth: (await heapInUse()) - before, remembered: lanes.snapshot().conversations };
}

import type { OpenAI } from 'openai';
import { defer } from 'rxjs';
import type { Observable } from 'rxjs';
import { chat, complete, createQuota, fromCall, respond, startTimer, throttleByBucket } from '../../../lib/index.ts';
import type { Runtime } from '../../../lib/index.ts';
import { startEmulator } from '../../../lib/emulator/index.ts';
import type {
  Emulator,
  EmulatorOptions,
  FaultPosition,
  FaultRule,
  RequestRecord,
} from '../../../lib/emulator/index.ts';

const messages = [{ role: 'user' as const, content: 'Hello' }];
const LONG = { tokens: 100_000, tokenMs: 5 };

/** Where a call is when it is left. */
export interface Phase {
  readonly name: string;
  /** What the emulator calls it; `undefined` where nothing may have been sent. */
  readonly seenAs: RequestRecord['phase'] | undefined;
  readonly fault?: FaultRule;
  /** Values that must have come before. */
  readonly values?: number;
  call(openai: OpenAI, runtime: Runtime): Observable<unknown>;
}

const chatCall = (openai: OpenAI, runtime: Runtime): Observable<unknown> =>
  chat(openai, { model: 'm', messages }, { runtime, timeouts: { tailMs: 60_000 } });
const stall = (after: FaultPosition): FaultRule => ({ kind: 'stall', after });

export const phases: readonly Phase[] = [
  {
    name: '`chat`, queued for a quota',
    seenAs: undefined,
    call: (openai, runtime) =>
      defer(() => {
        const quota = createQuota({ requestsPerMinute: 1, burstRequests: 1, maxWaitMs: Infinity }, runtime);
        quota.acquire({ cost: { requests: 1, tokens: 0, explicit: true } }).subscribe();
        return chatCall(openai, runtime).pipe(throttleByBucket(quota, { runtime }));
      }),
  },
  { name: '`chat`, before the head', seenAs: 'headers', fault: stall('connect'), call: chatCall },
  { name: '`chat`, head but no event', seenAs: 'first_content', fault: stall('headers'), call: chatCall },
  { name: '`chat`, events but no content', seenAs: 'first_content', fault: stall(0), call: chatCall },
  { name: '`chat`, streaming', seenAs: 'streaming', values: 4, fault: { kind: 'pass', answer: LONG }, call: chatCall },
  { name: '`chat`, streaming, then silence', seenAs: 'streaming', values: 4, fault: stall(3), call: chatCall },
  { name: '`chat`, after the finish reason', seenAs: 'tail', values: 4, fault: stall('finish'), call: chatCall },
  {
    name: '`respond`, streaming',
    seenAs: 'streaming',
    values: 4,
    fault: { kind: 'pass', answer: LONG },
    call: (openai, runtime) => respond(openai, { model: 'm', input: 'Hello' }, { runtime }),
  },
  {
    name: '`complete`, before the head',
    seenAs: 'headers',
    fault: stall('connect'),
    call: (openai, runtime) => complete(openai, { model: 'm', messages }, { runtime }),
  },
  {
    name: '`complete`, in mid-body',
    seenAs: 'response',
    fault: stall(0),
    call: (openai, runtime) => complete(openai, { model: 'm', messages }, { runtime }),
  },
  {
    name: '`fromCall`, a promise',
    seenAs: 'headers',
    fault: stall('connect'),
    call: (openai, runtime) =>
      fromCall((signal) => openai.embeddings.create({ model: 'm', input: 'Hello' }, { signal, maxRetries: 0 }), {
        runtime,
      }),
  },
  {
    name: '`fromCall`, a stream',
    seenAs: 'streaming',
    values: 4,
    fault: { kind: 'pass', answer: LONG },
    call: (openai, runtime) =>
      fromCall(
        (signal) => openai.chat.completions.create({ model: 'm', messages, stream: true }, { signal, maxRetries: 0 }),
        { runtime },
      ),
  },
];

export interface PromptAbort {
  /** From the unsubscription to the close of its connection at the emulator, for each round. */
  readonly closedAfterMs: readonly number[];
  /** Requests that the emulator got after the unsubscription. */
  readonly sentLater: number;
  /** What the emulator says of it, where that is not as it should be. */
  readonly wrong: readonly string[];
}

export type Fixture = { readonly emulator: Emulator; readonly runtime: Runtime };

export async function promptAbortEmulator(runtime: Runtime, options: EmulatorOptions = {}): Promise<Fixture> {
  return { emulator: await startEmulator({ tokens: 3, firstTokenMs: 1, tokenMs: 1, ...options, runtime }), runtime };
}

/** Leaves calls in one phase, one after another, and reads from the emulator when it saw that. */
export async function leaveInPhase(
  phase: Phase,
  openai: OpenAI,
  { emulator, runtime }: Fixture,
  rounds: number,
): Promise<PromptAbort> {
  const closedAfterMs: number[] = [];
  const wrong: string[] = [];
  let sentLater = 0;
  for (let round = 0; round < rounds; round++) {
    emulator.reset();
    if (phase.fault) emulator.script([phase.fault]);
    let values = 0;
    let failure: unknown;
    const subscription = phase
      .call(openai, runtime)
      .subscribe({ next: () => values++, error: (error: unknown) => (failure = error) });
    if (phase.seenAs === undefined) {
      await waits(runtime, 30);
      subscription.unsubscribe();
      await waits(runtime, 60);
      sentLater += emulator.report().requests;
      continue;
    }
    await turns(
      () => failure !== undefined || (record(emulator)?.phase === phase.seenAs && values >= (phase.values ?? 0)),
    );
    // What was written last is on its way; the client must have it.
    await waits(runtime, 10);
    const { upMs, requests } = emulator.report();
    subscription.unsubscribe();
    // Not by the count of connections: the SDK's pool may open another one at once.
    await turns(() => record(emulator)?.outcome !== 'running');
    const { endedMs = NaN, outcome, phase: seenAs } = record(emulator) ?? {};
    closedAfterMs.push(endedMs - upMs);
    if (outcome !== 'aborted' || seenAs !== phase.seenAs || failure !== undefined) {
      wrong.push(`${outcome} in ${seenAs}, client: ${String(failure)}`);
    }
    sentLater += emulator.report().requests - requests;
  }
  return { closedAfterMs, sentLater, wrong };
}

function record(emulator: Emulator): RequestRecord | undefined {
  return emulator.report().log.at(-1);
}

function waits(runtime: Runtime, ms: number): Promise<void> {
  return new Promise((resolve) => startTimer(runtime, ms, resolve));
}

/** Looks once in each turn of the event loop; gives up after many. */
async function turns(until: () => boolean): Promise<void> {
  for (let i = 0; i < 200_000 && !until(); i++) await new Promise((resolve) => setImmediate(resolve));
}

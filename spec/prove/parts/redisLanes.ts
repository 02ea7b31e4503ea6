import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { createClient } from 'redis';
import type { EmulatorOptions, RequestRecord } from '../../../lib/emulator/index.ts';
import { startRedisServer } from '../../helpers/redisServer.ts';
import { startEmulatorProcess } from './emulatorProcess.ts';
import type { LanesChildOptions, TurnOrder, TurnReport } from './lanesChild.ts';

const program = fileURLToPath(new URL('lanesChild.ts', import.meta.url));
const PROCESSES = 4;

/** `m` answers soon, `long` goes on for as long as anybody listens. */
const provider: EmulatorOptions = {
  firstTokenMs: 10,
  tokenMs: 5,
  tokens: 8,
  models: { m: {}, long: { tokens: 100_000, tokenMs: 20 } },
  recordBodies: true,
};

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

class Talker {
  readonly child: ChildProcess;
  readonly reports: TurnReport[] = [];

  constructor(options: LanesChildOptions) {
    this.child = fork(program, [JSON.stringify(options)], { execArgv: [] });
    this.child.setMaxListeners(0).on('message', (message) => {
      if (typeof message === 'object') this.reports.push(message as TurnReport);
    });
  }

  ask(order: TurnOrder): void {
    this.child.send(order);
  }

  heard(type: TurnReport['type'], order: TurnOrder): Promise<TurnReport> {
    return this.#first([type], order);
  }

  /** Has a place: it waits, or has begun. */
  inLine(order: TurnOrder): Promise<TurnReport> {
    return this.#first(['queued', 'granted'], order);
  }

  async #first(types: readonly TurnReport['type'][], { conversation, number }: TurnOrder): Promise<TurnReport> {
    for (;;) {
      const found = this.reports.find(
        (report) => types.includes(report.type) && report.conversation === conversation && report.number === number,
      );
      if (found) return found;
      if (!this.child.connected) throw new Error('the process has ended');
      await once(this.child, 'message');
    }
  }

  async end(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const exited = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await exited;
  }
}

export interface LanesWorld {
  readonly talkers: readonly Talker[];
  log(): Promise<readonly RequestRecord[]>;
  /** Scripts that the server has run. */
  scripts(): Promise<number>;
  /** Keys that it has, and entries in those of them that hold turns. */
  left(): Promise<{ readonly keys: number; readonly turns: number }>;
  close(): Promise<void>;
}

export async function startLanes(leaseMs: number): Promise<LanesWorld> {
  const redis = await startRedisServer();
  const emulator = await startEmulatorProcess(provider);
  const options = { redisPort: redis.port, baseURL: emulator.baseURL, leaseMs };
  const talkers = Array.from({ length: PROCESSES }, () => new Talker(options));
  await Promise.all(talkers.map(({ child }) => once(child, 'message')));
  const admin = createClient({ socket: { port: redis.port, host: '127.0.0.1' } });
  await admin.connect();
  return {
    talkers,
    log: async () => (await emulator.report()).log,
    scripts: async () => Number(/cmdstat_evalsha:calls=(\d+)/.exec(await admin.info('commandstats'))?.[1] ?? 0),
    left: async () => {
      const held = 'sluice:{talks}:lanes:';
      const lines = await Promise.all(['line', 'places', 'news'].map((key) => admin.zCard(held + key)));
      const holders = await admin.hLen(`${held}holders`);
      return { keys: await admin.dbSize(), turns: lines.reduce((sum, turns) => sum + turns, holders) };
    },
    async close() {
      await Promise.all(talkers.map((talker) => talker.end()));
      admin.destroy();
      await emulator.close();
      await redis.close();
    },
  };
}

export interface SpreadTurns {
  readonly answered: number;
  /** Requests that came while the one before them in their conversation was still being answered. */
  readonly overlaps: number;
  /** Conversations whose requests arrived in the order in which their turns were asked for. */
  readonly inOrder: number;
  /** From the end of a turn to the start of the next in another process, and in the same one. Sorted. */
  readonly betweenMs: readonly number[];
  readonly withinMs: readonly number[];
  readonly scriptsPerTurn: number;
  readonly left: { readonly keys: number; readonly turns: number };
}

/** Each turn of each conversation is asked for in the next process. */
export async function spreadTurns(world: LanesWorld, conversations: number, turns: number): Promise<SpreadTurns> {
  const { talkers } = world;
  const before = await world.scripts();
  const orders: { readonly order: TurnOrder; readonly talker: Talker }[] = [];
  for (let number = 0; number < turns; number++) {
    for (let c = 0; c < conversations; c++) {
      // Two in a row of each process, so that there are both kinds of passing on.
      const talker = talkers[(c + (number >> 1)) % talkers.length]!;
      const order = { conversation: `c-${c}`, number, model: 'm' };
      talker.ask(order);
      orders.push({ order, talker });
    }
    // What is asked for in the same instant in two processes has no order.
    const last = orders.slice(-conversations);
    await Promise.all(last.map(({ order, talker }) => talker.inLine(order)));
  }
  const ends = await Promise.all(orders.map(({ order, talker }) => talker.heard('ended', order)));
  const scripts = (await world.scripts()) - before;
  await pause(50);

  const byConversation = new Map<string, RequestRecord[]>();
  for (const record of await world.log()) {
    const { conversation = '' } = record;
    if (conversation.startsWith('c-')) {
      byConversation.set(conversation, [...(byConversation.get(conversation) ?? []), record]);
    }
  }
  const logs = [...byConversation.values()];
  const overlaps = logs.flatMap((log) =>
    log.slice(1).filter(({ arrivedMs }, at) => (log[at]?.endedMs ?? Infinity) > arrivedMs),
  ).length;
  const betweenMs: number[] = [];
  const withinMs: number[] = [];
  for (const { order, talker } of orders) {
    const next = orders.find(
      (each) => each.order.conversation === order.conversation && each.order.number === order.number + 1,
    );
    if (!next) continue;
    const ended = await talker.heard('ended', order);
    const started = await next.talker.heard('granted', next.order);
    (next.talker === talker ? withinMs : betweenMs).push(started.atMs - ended.atMs);
  }
  const ascending = (a: number, b: number): number => a - b;
  return {
    answered: ends.filter(({ result }) => result === 'answered').length,
    overlaps,
    inOrder: logs.filter((log) => log.length === turns && log.every((record, at) => turnOf(record) === at)).length,
    betweenMs: betweenMs.sort(ascending),
    withinMs: withinMs.sort(ascending),
    scriptsPerTurn: scripts / orders.length,
    left: await world.left(),
  };
}

export interface CrashedHolder {
  /** From the kill to the start of the next turn, in another process. */
  readonly freeAfterMs: number;
  /** That one was asked for after a turn that waited in the process that was killed. */
  readonly result: string;
}

/** `kill -9` of a process whose turn runs, while another of its turns and one of another process wait. */
export async function crashHolder({ talkers }: LanesWorld): Promise<CrashedHolder> {
  const [victim, rest] = [talkers[0]!, talkers[1]!];
  const order = (number: number, model = 'm'): TurnOrder => ({ conversation: 'crash', number, model });
  victim.ask(order(0, 'long'));
  await victim.heard('granted', order(0));
  victim.ask(order(1));
  await victim.heard('queued', order(1));
  rest.ask(order(2));
  await rest.heard('queued', order(2));
  await pause(300);
  const killedAtMs = Date.now();
  await victim.end();
  const { atMs } = await rest.heard('granted', order(2));
  const { result } = await rest.heard('ended', order(2));
  return { freeAfterMs: atMs - killedAtMs, result };
}

export interface StoppedHolder {
  /** From the stop to the start of the next turn, in another process. */
  readonly freeAfterMs: number;
  readonly next: string;
  /** How the turn ended that had lost its lane. */
  readonly result: string;
  /** From when its process went on. */
  readonly endedAfterMs: number;
  /** How a turn ended that the same process asked for before it was stopped. */
  readonly behind: string;
}

/** A process stands still for longer than its lease in the middle of an answer, of which more comes all the while. */
export async function stopHolder({ talkers }: LanesWorld, stopMs: number): Promise<StoppedHolder> {
  const [slow, rest] = [talkers[2]!, talkers[3]!];
  const order = (number: number, model = 'm'): TurnOrder => ({ conversation: 'stop', number, model });
  slow.ask(order(0, 'long'));
  await slow.heard('granted', order(0));
  rest.ask(order(1));
  await rest.heard('queued', order(1));
  slow.ask(order(2));
  await slow.heard('queued', order(2));
  await pause(300);
  const stoppedAtMs = Date.now();
  slow.child.kill('SIGSTOP');
  await pause(stopMs);
  const freeAfterMs = (await rest.heard('granted', order(1))).atMs - stoppedAtMs;
  const next = await rest.heard('ended', order(1));
  const wentOnAtMs = Date.now();
  slow.child.kill('SIGCONT');
  const lost = await slow.heard('ended', order(0));
  const behind = await slow.heard('ended', order(2));
  return {
    freeAfterMs,
    next: next.result,
    result: lost.result,
    endedAfterMs: lost.atMs - wentOnAtMs,
    behind: behind.result,
  };
}

function turnOf({ body }: RequestRecord): number {
  const { messages } = body as { readonly messages: readonly { readonly content: string }[] };
  return Number(messages[0]?.content);
}

import { ConversationLanes } from '../../lib/limits/ConversationLanes.ts';
import type { ConversationLanesOptions } from '../../lib/limits/ConversationLanes.ts';
import type { Turn, TurnWait } from '../../lib/limits/Lane.ts';
import type { Deed, World } from './explore.ts';
import { ModelClock, must } from './rules.ts';

interface Line {
  running: Turn | undefined;
  waiting: Turn[];
}

const MOST_WAITING = 2;
export const LANES: ConversationLanesOptions = { maxWaiting: MOST_WAITING };
const WAIT_MS = 2;
const CONVERSATIONS = ['a', 'b'] as const;

/** Turns of two conversations: they enter, wait at most 2 ms, end in any order, and supersede each other. */
export class LanesWorld implements World {
  readonly #clock = new ModelClock();
  readonly #lanes: ConversationLanes;
  readonly #lines = new Map<string, Line>(CONVERSATIONS.map((name) => [name, { running: undefined, waiting: [] }]));
  #left: number;

  constructor(turns: number, make: (clock: ModelClock) => ConversationLanes = lanesOf) {
    this.#left = turns;
    this.#lanes = make(this.#clock);
  }

  deeds(): readonly Deed[] {
    const deeds: Deed[] = [];
    for (const [name, { running, waiting }] of this.#lines) {
      if (this.#left > 0) {
        deeds.push([`a turn of ${name} enters`, () => this.#enter(name, WAIT_MS)]);
        deeds.push([`a patient turn of ${name} enters`, () => this.#enter(name, Infinity)]);
        deeds.push([`a turn supersedes ${name}`, () => this.#supersede(name)]);
      }
      if (running) deeds.push([`the turn of ${name} ends`, () => this.#end(name, running)]);
      waiting.forEach((turn, at) =>
        deeds.push([`number ${at + 1} of ${name} gives up`, () => this.#giveUp(name, turn)]),
      );
    }
    deeds.push(['those overdue expire', () => this.#expire()]);
    deeds.push(['1 ms passes', () => void this.#clock.nowMs++]);
    return deeds;
  }

  key(): string {
    const { nowMs } = this.#clock;
    const everyone = this.#everyoneWaiting();
    const lines = [...this.#lines.values()].map(({ running, waiting }) => {
      const turns = waiting.map((turn) => `${everyone.indexOf(turn)}:${Math.max(0, expiresAtMs(turn) - nowMs)}`);
      return `${running ? 'runs' : 'idle'} ${turns.join()}`;
    });
    return `${this.#left} ${lines.join('; ')}`;
  }

  wrong(): string | undefined {
    const lines = [...this.#lines.values()];
    const everyone = this.#everyoneWaiting();
    const remembered = lines.filter(({ running }) => running).length;
    if (lines.some(({ running, waiting }) => !running && waiting.length > 0)) return 'waits where nobody runs';
    if (this.#lanes.conversations !== remembered) return `${this.#lanes.conversations} conversations are remembered`;
    if (this.#lanes.waiting !== everyone.length) return `${this.#lanes.waiting} wait, and ${everyone.length} should`;
    if (lines.some(({ running }) => running && running.state !== 'running')) return 'a turn runs and is told otherwise';
    if (everyone.some(({ state }) => state !== 'waiting')) return 'a turn waits and is told otherwise';
    const firstMs = Math.min(Infinity, ...everyone.map(expiresAtMs));
    return this.#lanes.nextExpiryAtMs === firstMs ? undefined : `expects the next to expire at ${firstMs}`;
  }

  ended(): boolean {
    return this.#left === 0 && [...this.#lines.values()].every(({ running }) => running === undefined);
  }

  #everyoneWaiting(): Turn[] {
    return [...this.#lines.values()].flatMap(({ waiting }) => waiting).sort((a, b) => orderOf(a) - orderOf(b));
  }

  #line(name: string): Line {
    return this.#lines.get(name) as Line;
  }

  #enter(name: string, maxWaitMs: number): unknown {
    this.#left--;
    const line = this.#line(name);
    const decision = this.#lanes.enter({ conversation: name, maxWaitMs });
    const due = line.running === undefined ? 'started' : line.waiting.length < MOST_WAITING ? 'waiting' : 'refused';
    must(decision.kind === due, `is ${decision.kind}, and ${due} was due`);
    if (decision.kind === 'started') line.running = decision.turn;
    else if (decision.kind === 'waiting') {
      line.waiting.push(decision.turn);
      must(decision.position === line.waiting.length, `is told place ${decision.position}`);
    } else {
      const { code, retryAfterMs } = decision.refusal;
      must(
        code === 'queue_full' && retryAfterMs > 0 && retryAfterMs < Infinity,
        `refused: ${code}, ${retryAfterMs} ms`,
      );
    }
    return decision.kind;
  }

  #supersede(name: string): unknown {
    this.#left--;
    const line = this.#line(name);
    const due = line.running ? [line.running, ...line.waiting] : [];
    const decision = this.#lanes.enter({ conversation: name, supersede: true });
    must(decision.kind === 'started', `is ${decision.kind}`);
    must(
      decision.superseded.length === due.length && due.every((turn, i) => decision.superseded[i] === turn),
      'leaves a turn',
    );
    must(
      due.every(({ state }) => state === 'over'),
      'a superseded turn is not over',
    );
    line.running = decision.turn;
    line.waiting = [];
    // The cancel of a superseded turn comes later, and must not end the new one.
    must(
      due.every((turn) => this.#lanes.leave(turn) === undefined),
      'a turn that is over lets another one start',
    );
    return decision.superseded.length;
  }

  #end(name: string, turn: Turn): unknown {
    const line = this.#line(name);
    const next = this.#lanes.leave(turn);
    must(next === line.waiting[0], next ? 'a turn starts out of order' : 'nobody starts, and one waits');
    must(this.#lanes.leave(turn) === undefined, 'leaves twice');
    line.running = line.waiting.shift();
    return line.running ? 'next' : 'idle';
  }

  #giveUp(name: string, turn: Turn): unknown {
    const line = this.#line(name);
    must(this.#lanes.leave(turn) === undefined, 'a turn starts beside the one that runs');
    line.waiting.splice(line.waiting.indexOf(turn), 1);
    return 'left';
  }

  #expire(): unknown {
    const { nowMs } = this.#clock;
    const overdue = this.#everyoneWaiting().filter((turn) => expiresAtMs(turn) <= nowMs);
    const due = overdue.sort((a, b) => expiresAtMs(a) - expiresAtMs(b) || orderOf(a) - orderOf(b));
    const expired = this.#lanes.expire();
    must(
      expired.length === due.length && due.every((turn, i) => expired[i]?.turn === turn),
      'others expire than those overdue',
    );
    must(
      expired.every(({ refusal }) => refusal.code === 'queue_timeout'),
      'expires with another code',
    );
    for (const line of this.#lines.values()) line.waiting = line.waiting.filter((turn) => !due.includes(turn));
    return due.length;
  }
}

export function lanesOf(clock: ModelClock): ConversationLanes {
  return new ConversationLanes(LANES, clock);
}

function expiresAtMs({ wait }: Turn): number {
  return (wait as TurnWait).bound.atMs;
}

function orderOf({ wait }: Turn): number {
  return (wait as TurnWait).order;
}

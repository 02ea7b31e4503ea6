import type { Clock } from '../../core/runtime.ts';
import type { DemoCall } from './load.ts';

export interface Score {
  readonly calls: number;
  readonly answered: number;
  readonly failed: number;
  readonly tookMs: number;
  /** Of the answered calls, in milliseconds from the call to its first content; NaN where none was answered. */
  readonly firstContentMs: { readonly p50: number; readonly p95: number; readonly p99: number };
  readonly conversations: number;
  /** Conversations whose turns were all answered, each begun after the one before it had ended. */
  readonly inOrder: number;
}

interface Entry {
  readonly call: DemoCall;
  readonly askedMs: number;
  firstContentMs: number | undefined;
  endedMs: number | undefined;
  outcome: 'open' | 'answered' | 'failed';
}

/** What became of the calls of one run. */
export class Scoreboard {
  readonly #clock: Clock;
  readonly #startedMs: number;
  readonly #entries: Entry[] = [];
  readonly #conversations = new Map<string, Entry[]>();
  answered = 0;
  failed = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedMs = clock.now();
  }

  get elapsedMs(): number {
    return this.#clock.now() - this.#startedMs;
  }

  /** A call is made. */
  asked(call: DemoCall): { content(): void; answered(): void; failed(): void } {
    const entry: Entry = {
      call,
      askedMs: this.#clock.now(),
      firstContentMs: undefined,
      endedMs: undefined,
      outcome: 'open',
    };
    this.#entries.push(entry);
    if (call.conversation !== undefined) {
      const turns = this.#conversations.get(call.conversation) ?? [];
      this.#conversations.set(call.conversation, turns);
      turns.push(entry);
    }
    const end = (outcome: 'answered' | 'failed'): void => {
      entry.outcome = outcome;
      entry.endedMs = this.#clock.now();
      this[outcome]++;
    };
    return {
      content: () => void (entry.firstContentMs ??= this.#clock.now()),
      answered: () => end('answered'),
      failed: () => end('failed'),
    };
  }

  score(): Score {
    const waits = this.#entries
      .flatMap(({ outcome, askedMs, firstContentMs }) =>
        outcome === 'answered' && firstContentMs !== undefined ? [firstContentMs - askedMs] : [],
      )
      .sort((a, b) => a - b);
    const conversations = [...this.#conversations.values()];
    return {
      calls: this.#entries.length,
      answered: this.answered,
      failed: this.failed,
      tookMs: this.elapsedMs,
      firstContentMs: { p50: percentile(waits, 50), p95: percentile(waits, 95), p99: percentile(waits, 99) },
      conversations: conversations.length,
      inOrder: conversations.filter(inOrder).length,
    };
  }
}

function inOrder(turns: readonly Entry[]): boolean {
  const byTurn = [...turns].sort((a, b) => a.call.turn - b.call.turn);
  return byTurn.every((entry, index) => {
    const { endedMs: before = -Infinity } = byTurn[index - 1] ?? {};
    return entry.outcome === 'answered' && (entry.firstContentMs ?? -Infinity) >= before;
  });
}

/** Nearest rank. `sorted` ascending. */
function percentile(sorted: readonly number[], percent: number): number {
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? Number.NaN;
}

import { utf8Length } from '../wire/utf8Length.ts';
import { isLast } from './AnswerEvent.ts';
import type { AnswerEvent } from './AnswerEvent.ts';

/** About what an event takes up in memory besides its text. */
const EVENT_BYTES = 160;

/** The events of one stream, as far as they are kept. Ids are the stream's name and the number of the event, from 1. */
export class ReplayLog {
  readonly name: string;
  #events: AnswerEvent[] = [];
  /** Events that are kept no longer: they were the first ones. */
  #dropped = 0;
  #bytes = 0;
  #over = false;

  constructor(name: string) {
    this.name = name;
  }

  /** Number of the last event; 0 before there is one. */
  get last(): number {
    return this.#dropped + this.#events.length;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Whether nothing follows. */
  get over(): boolean {
    return this.#over;
  }

  /** Whether the event after `seen` is kept, or still to come. */
  reaches(seen: number): boolean {
    return seen >= this.#dropped && seen <= this.last;
  }

  /** The event with that number. */
  at(number: number): AnswerEvent | undefined {
    return this.#events[number - this.#dropped - 1];
  }

  /** @returns The bytes that it takes up. */
  add(event: AnswerEvent): number {
    const bytes = bytesOf(event);
    this.#events.push({ ...event, id: `${this.name}-${this.last + 1}` });
    this.#bytes += bytes;
    this.#over = isLast(event);
    return bytes;
  }

  /** Drops its first events until `bytes` are free, or none is left. @returns How many bytes became free. */
  drop(bytes: number): number {
    let freed = 0;
    let count = 0;
    while (freed < bytes && count < this.#events.length) freed += bytesOf(this.#events[count++] as AnswerEvent);
    this.#events = this.#events.slice(count);
    this.#dropped += count;
    this.#bytes -= freed;
    return freed;
  }
}

function bytesOf({ type, data }: AnswerEvent): number {
  if (type === 'delta' || type === 'reasoning' || type === 'refusal') return EVENT_BYTES + utf8Length(data.text);
  return type === 'tool_call' ? 2 * EVENT_BYTES + utf8Length(data.arguments) : 2 * EVENT_BYTES;
}

export interface EventPosition {
  /** Of the stream. */
  readonly name: string;
  /** The event that was read last. */
  readonly seen: number;
}

/** Reads a `Last-Event-ID`. `undefined` for what cannot be one of ours: it comes from outside, and may be anything. */
export function readEventId(id: string): EventPosition | undefined {
  const match = /^([\w-]{1,64})-(\d{1,15})$/.exec(id);
  return match?.[1] === undefined ? undefined : { name: match[1], seen: Number(match[2]) };
}

import type { ToolCall } from '../core/answer.ts';
import { SluiceError } from '../core/errors.ts';

type Fields = Readonly<Record<string, unknown>>;

interface Call {
  /** Index on the wire; several calls may have the same, and some have none. */
  readonly wireIndex: number | undefined;
  id: string | undefined;
  type: string;
  name: string;
  arguments: string;
  snapshot: ToolCall | undefined;
}

/**
 * Puts tool calls together from their pieces. A piece belongs to the call with its id; without one, to the latest call
 * with its index; without either, to the only call that is still open. A new id at a used index is a new call.
 */
export class ToolCallBuilder {
  readonly #calls: Call[] = [];
  #snapshot: readonly ToolCall[] | undefined = [];

  /**
   * Adds a piece of `tool_calls`.
   * @returns Whether it held anything.
   * @throws SluiceError `upstream_body_invalid` where the piece could belong to several calls.
   */
  add(piece: unknown): boolean {
    if (typeof piece !== 'object' || piece === null) return false;
    const { index, id, type } = piece as Fields;
    const body = ((piece as Fields)['function'] ?? (piece as Fields)['custom'] ?? piece) as Fields;
    const name = text(body['name']);
    const added = argumentsOf(body['arguments'] ?? body['input']);
    const named = text(id);
    if (name === '' && added === '' && named === '') return false;
    const wireIndex = Number.isSafeInteger(index) ? (index as number) : undefined;
    const call = this.#find(wireIndex, named, name) ?? this.#open(wireIndex);
    if (named !== '') call.id ??= named;
    if (typeof type === 'string' && type !== '') call.type = type;
    call.name = joinedName(call.name, name);
    call.arguments += added;
    this.#changed(call);
    return true;
  }

  /** Sets the whole arguments of a call, as they are repeated at its end. @returns Whether they were news. */
  complete(id: string, args: unknown): boolean {
    const whole = argumentsOf(args);
    // An end that repeats nothing does not take back what came.
    if (whole === '') return false;
    const call = this.#byId(id);
    if (call === undefined) return this.add({ id, arguments: whole });
    if (call.arguments === whole) return false;
    call.arguments = whole;
    this.#changed(call);
    return true;
  }

  has(id: string): boolean {
    return this.#byId(id) !== undefined;
  }

  get size(): number {
    return this.#calls.length;
  }

  snapshot(): readonly ToolCall[] {
    return (this.#snapshot ??= this.#calls.map((call, at) => {
      const { id, type, name, arguments: args } = call;
      return (call.snapshot ??= { index: at, id, type, name, arguments: args });
    }));
  }

  #find(wireIndex: number | undefined, id: string, name: string): Call | undefined {
    if (id !== '') {
      const known = this.#byId(id);
      if (known !== undefined) return known;
      const unnamed = wireIndex === undefined ? undefined : this.#byIndex(wireIndex);
      return unnamed?.id === undefined ? unnamed : undefined;
    }
    if (wireIndex !== undefined) return this.#byIndex(wireIndex);
    const open = this.#calls.filter((call) => !isWhole(call.arguments));
    const only = open.length === 1 ? open[0] : undefined;
    if (name !== '' && only?.name !== '') return undefined;
    if (only !== undefined) return only;
    if (this.#calls.length <= 1) return this.#calls[0];
    throw new SluiceError('upstream_body_invalid', 'a piece of a tool call names neither its index nor its id');
  }

  #open(wireIndex: number | undefined): Call {
    const call = { wireIndex, id: undefined, type: 'function', name: '', arguments: '', snapshot: undefined };
    this.#calls.push(call);
    return call;
  }

  #byId(id: string): Call | undefined {
    return this.#calls.findLast((call) => call.id === id);
  }

  #byIndex(index: number): Call | undefined {
    return this.#calls.findLast((call) => call.wireIndex === index);
  }

  #changed(call: Call): void {
    call.snapshot = undefined;
    this.#snapshot = undefined;
  }
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Text as a rule; some servers send the arguments as the object that they stand for. */
function argumentsOf(value: unknown): string {
  if (typeof value === 'object' && value !== null) return JSON.stringify(value);
  return text(value);
}

/** A name comes whole, again with every piece, in pieces, or growing. */
function joinedName(held: string, came: string): string {
  return came.startsWith(held) ? came : held + came;
}

function isWhole(args: string): boolean {
  if (!args.endsWith('}')) return false;
  let whole = false;
  try {
    JSON.parse(args);
    whole = true;
  } catch {
    // It goes on.
  }
  return whole;
}

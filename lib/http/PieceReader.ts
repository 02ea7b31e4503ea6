import { ChoiceBuilder } from '../wire/ChoiceBuilder.ts';
import type { AnswerEvent } from './AnswerEvent.ts';

/** Tells each piece of a choice as an event, and keeps none of its text. */
export class PieceReader extends ChoiceBuilder {
  readonly #tell: (event: AnswerEvent) => void;
  /** What has been told of each tool call. */
  readonly #calls: { length: number; id: string | undefined; name: string }[] = [];
  #empty = true;

  constructor(index: number, tell: (event: AnswerEvent) => void) {
    super(index);
    this.#tell = tell;
  }

  override get empty(): boolean {
    return this.#empty;
  }

  override addText(text: string): void {
    this.#piece('delta', text);
  }

  override addReasoning(text: string): void {
    this.#piece('reasoning', text);
  }

  override addRefusal(text: string): void {
    this.#piece('refusal', text);
  }

  override addOther(): void {
    this.#empty = false;
  }

  override addToolPiece(piece: unknown): boolean {
    const held = super.addToolPiece(piece);
    if (held) this.#tellCalls();
    return held;
  }

  override completeCall(id: string, args: unknown): boolean {
    const held = super.completeCall(id, args);
    if (held) this.#tellCalls();
    return held;
  }

  #piece(type: 'delta' | 'reasoning' | 'refusal', text: string): void {
    this.#empty = false;
    if (text !== '') this.#tell({ type, data: { index: this.index, text } });
  }

  #tellCalls(): void {
    this.#empty = false;
    for (const { index: call, id, name, arguments: args } of this.snapshot().toolCalls) {
      const told = (this.#calls[call] ??= { length: 0, id: undefined, name: '' });
      const news = {
        ...(id !== told.id && { id }),
        ...(name !== told.name && { name }),
        arguments: args.length > told.length ? args.slice(told.length) : '',
      };
      if (id === told.id && name === told.name && news.arguments === '') continue;
      this.#calls[call] = { length: args.length, id, name };
      this.#tell({ type: 'tool_call', data: { index: this.index, call, ...news } });
    }
  }
}

import type { AnswerChoice } from '../core/answer.ts';
import { ResponseItems } from './ResponseItems.ts';
import { ToolCallBuilder } from './ToolCallBuilder.ts';

type Fields = Readonly<Record<string, unknown>>;

const NO_CALLS: AnswerChoice['toolCalls'] = Object.freeze([]);

/** One choice of an answer, growing. */
export class ChoiceBuilder {
  readonly index: number;
  /** Made for those who need them: most answers are text of a chat. */
  #tools: ToolCallBuilder | undefined;
  #items: ResponseItems | undefined;
  #text = '';
  #reasoning = '';
  #refusal = '';
  #finishReason: string | null = null;
  /** Audio or images came: content that an answer has no field for. */
  #other = false;
  #snapshot: AnswerChoice | undefined;

  constructor(index: number) {
    this.index = index;
  }

  get finishReason(): string | null {
    return this.#finishReason;
  }
  get items(): ResponseItems {
    return (this.#items ??= new ResponseItems());
  }
  /** Nothing has come but white space. */
  get blank(): boolean {
    const written = this.#text + this.#reasoning + this.#refusal;
    return !this.#other && !this.#tools?.size && written.trim() === '';
  }
  get empty(): boolean {
    return !this.#other && this.#text === '' && this.#reasoning === '' && this.#refusal === '' && !this.#tools?.size;
  }

  addText(text: string): void {
    this.#text += text;
    this.#snapshot = undefined;
  }

  addReasoning(text: string): void {
    this.#reasoning += text;
    this.#snapshot = undefined;
  }

  addRefusal(text: string): void {
    this.#refusal += text;
    this.#snapshot = undefined;
  }

  addOther(): void {
    this.#other = true;
  }

  finish(reason: string): void {
    this.#finishReason = reason;
    this.#snapshot = undefined;
  }

  /**
   * Adds a choice of a chat chunk, or of a whole chat answer.
   * @returns Whether it held content.
   */
  addChoice(choice: Fields): boolean {
    const delta = (choice['delta'] ?? choice['message']) as Fields | null | undefined;
    const { finish_reason: reason } = choice;
    if (typeof reason === 'string' && reason !== '') this.finish(reason);
    if (typeof choice['text'] === 'string' && choice['text'] !== '') {
      this.addText(choice['text']);
      return true;
    }
    return typeof delta === 'object' && delta !== null ? this.#addDelta(delta) : false;
  }

  #addDelta(delta: Fields): boolean {
    const { content } = delta;
    let held = typeof content === 'string' && content !== '';
    if (held) this.addText(content as string);
    else if (Array.isArray(content)) for (const part of content as unknown[]) held = this.#addPart(part) || held;
    // Nearly every delta has no more than this, and each look-up of a field that is absent costs.
    // Stryker disable next-line ConditionalExpression,LogicalOperator,StringLiteral: a delta without the rest only takes longer
    for (const key in delta) if (key !== 'content' && key !== 'role') return this.#addRest(delta) || held;
    return held;
  }

  #addRest(delta: Fields): boolean {
    let held = this.#addThought(delta);
    const { refusal, tool_calls: toolCalls, function_call: legacyCall } = delta;
    if (typeof refusal === 'string' && refusal !== '') {
      this.addRefusal(refusal);
      held = true;
    }
    if (isFilled(delta['audio']) || isFilled(delta['images'])) {
      this.#other = true;
      held = true;
    }
    if (Array.isArray(toolCalls)) {
      for (const piece of toolCalls as unknown[]) held = this.addToolPiece(piece) || held;
    }
    if (typeof legacyCall === 'object' && legacyCall !== null) {
      held = this.addToolPiece({ index: 0, function: legacyCall }) || held;
    }
    return held;
  }

  /** Vendors that name a text of reasoning twice do so in the same chunk: the first that is filled is taken. */
  #addThought(delta: Fields): boolean {
    for (const key of ['reasoning_content', 'reasoning', 'thinking']) {
      const thought = delta[key];
      if (typeof thought !== 'string' || thought === '') continue;
      this.addReasoning(thought);
      return true;
    }
    const details = delta['reasoning_details'];
    if (!Array.isArray(details) || details.length === 0) return false;
    this.addReasoning(detailText(details));
    return true;
  }

  addToolPiece(piece: unknown): boolean {
    this.#snapshot = undefined;
    return (this.#tools ??= new ToolCallBuilder()).add(piece);
  }

  /** Sets the whole arguments of a call whose pieces may have come before. @returns Whether any were new. */
  completeCall(id: string, args: unknown): boolean {
    this.#snapshot = undefined;
    return (this.#tools ??= new ToolCallBuilder()).complete(id, args);
  }

  hasCall(id: string): boolean {
    return this.#tools?.has(id) === true;
  }

  /** Some vendors send content as a list of typed parts, thinking among them. */
  #addPart(part: unknown): boolean {
    if (typeof part !== 'object' || part === null) return false;
    const { type, text, thinking } = part as Fields;
    if (type === 'thinking' || type === 'reasoning') {
      const thought = typeof thinking === 'string' ? thinking : Array.isArray(thinking) ? detailText(thinking) : text;
      if (typeof thought !== 'string' || thought === '') return false;
      this.addReasoning(thought);
      return true;
    }
    if (typeof text === 'string') {
      if (text === '') return false;
      this.addText(text);
      return true;
    }
    this.#other = true;
    return true;
  }

  snapshot(): AnswerChoice {
    return (this.#snapshot ??= {
      index: this.index,
      text: this.#text,
      reasoning: this.#reasoning,
      refusal: this.#refusal,
      toolCalls: this.#tools?.snapshot() ?? NO_CALLS,
      finishReason: this.#finishReason,
    });
  }
}

function detailText(details: readonly unknown[]): string {
  let all = '';
  for (const detail of details) {
    const { text, summary } = (detail ?? {}) as Fields;
    if (typeof text === 'string') all += text;
    else if (typeof summary === 'string') all += summary;
  }
  return all;
}

function isFilled(value: unknown): boolean {
  return Array.isArray(value)
    ? value.length > 0
    : typeof value === 'object' && value !== null && Object.keys(value).length > 0;
}

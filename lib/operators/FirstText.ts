import { ChoiceBuilder } from '../wire/ChoiceBuilder.ts';
import { addResponseEvent } from '../wire/responseEvents.ts';
import { isOfResponses } from './answerPart.ts';

type Fields = Readonly<Record<string, unknown>>;

/** The text that a part adds to the first choice, read as for a whole answer, with nothing kept but what was just added. */
export class FirstText extends ChoiceBuilder {
  #added = '';
  #empty = true;

  constructor() {
    super(0);
  }

  textOf(part: unknown): string {
    this.#added = '';
    if (isOfResponses(part)) addResponseEvent(this, part as Fields);
    else this.#addChat(part);
    return this.#added;
  }

  override get empty(): boolean {
    return this.#empty;
  }

  override addText(text: string): void {
    this.#added += text;
    this.#empty = false;
  }

  override addReasoning(): void {
    this.#empty = false;
  }

  override addRefusal(): void {
    this.#empty = false;
  }

  override addOther(): void {
    this.#empty = false;
  }

  override addToolPiece(): boolean {
    this.#empty = false;
    return true;
  }

  #addChat(part: unknown): void {
    const choices: unknown = (part as Fields | null | undefined)?.['choices'];
    if (!Array.isArray(choices)) return;
    for (const choice of choices as (Fields | null)[]) {
      const index = choice?.['index'];
      // Vendors that know one choice only leave the index out.
      if (choice && !(typeof index === 'number' && index > 0)) this.addChoice(choice);
    }
  }
}

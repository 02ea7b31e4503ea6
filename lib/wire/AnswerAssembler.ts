import type { Answer, AnswerChoice } from '../core/answer.ts';
import type { Usage } from '../core/hints.ts';
import { ChoiceBuilder } from './ChoiceBuilder.ts';
import { addResponseEvent } from './responseEvents.ts';
import { isCounted, readUsage } from './usage.ts';

type Fields = Readonly<Record<string, unknown>>;

type MakeChoice = (index: number) => ChoiceBuilder;

/** Set by the class, which alone can reach its builders. */
let withChoices: (makeChoice: MakeChoice) => AnswerAssembler;

/** An assembler for those who want to hear of each piece: by the builders of its choices. */
export function assemblerOf(makeChoice: MakeChoice): AnswerAssembler {
  return withChoices(makeChoice);
}

/**
 * Puts an answer together from chat chunks, from Responses events, or from either API's whole body. Each chunk costs its
 * own length and each snapshot the number of its choices: text is appended, and what did not change is shared with the
 * snapshot before.
 *
 * `addChat` and `addResponses` throw SluiceError `upstream_body_invalid` for a piece of a tool call that could belong to
 * several; what came before it is kept. Anything else that is not understood is ignored.
 */
export class AnswerAssembler {
  #makeChoice: MakeChoice = (index) => new ChoiceBuilder(index);
  #choices: ChoiceBuilder[] = [];
  #rawUsage: unknown;
  #usage: Usage | undefined;
  #model: string | undefined;
  #id: string | undefined;
  #serviceTier: string | undefined;
  #systemFingerprint: string | undefined;
  #restarts = 0;

  static {
    // Not an option of the constructor, which is public: builders are not.
    withChoices = (makeChoice) => {
      const assembler = new AnswerAssembler();
      assembler.#makeChoice = makeChoice;
      return assembler;
    };
  }

  /** @returns Whether the chunk held content. */
  addChat(chunk: unknown): boolean {
    const fields = asFields(chunk);
    if (fields === undefined) return false;
    let held = false;
    if (typeof fields['model'] === 'string' && fields['model'] !== '') this.#model = fields['model'];
    this.#named(fields);
    // Noted first: a piece of a tool call may throw.
    this.#noteUsage(chatUsage(fields));
    const choices = fields['choices'];
    if (Array.isArray(choices)) {
      for (const choice of choices as unknown[]) {
        const its = asFields(choice);
        if (its !== undefined) held = this.#choice(its['index']).addChoice(its) || held;
      }
    }
    return held;
  }

  /** More text of the first choice. */
  addText(text: string): void {
    this.#choice(0).addText(text);
  }

  /** @returns Whether the event held content. */
  addResponses(event: unknown): boolean {
    const fields = asFields(event);
    if (fields === undefined) return false;
    const response = asFields(fields['response']) ?? (fields['object'] === 'response' ? fields : undefined);
    if (typeof response?.['model'] === 'string') this.#model = response['model'];
    if (response !== undefined) this.#named(response);
    this.#noteUsage(response?.['usage']);
    return addResponseEvent(this.#choice(0), fields);
  }

  /** What the provider counted, where no chunk says so. */
  addUsage(usage: Usage): void {
    this.#usage ??= usage;
  }

  /** The answer starts over: everything is forgotten but the number of restarts. */
  restart(): void {
    this.#choices = [];
    this.#rawUsage = undefined;
    this.#usage = undefined;
    this.#model = undefined;
    this.#id = undefined;
    this.#serviceTier = undefined;
    this.#systemFingerprint = undefined;
    this.#restarts++;
  }

  snapshot(): Answer {
    const choices: readonly AnswerChoice[] = this.#choices.map((choice) => choice.snapshot());
    const { text, reasoning, refusal, toolCalls, finishReason } = choices[0] ?? NO_CHOICE;
    return {
      text,
      reasoning,
      refusal,
      toolCalls,
      finishReason,
      choices,
      usage: this.usage,
      model: this.#model,
      restarts: this.#restarts,
      empty: this.empty,
    };
  }

  get usage(): Usage | undefined {
    return (this.#usage ??= this.#rawUsage === undefined ? undefined : readUsage(this.#rawUsage));
  }

  get choiceCount(): number {
    return this.#choices.length;
  }

  get finishReasons(): readonly string[] {
    return this.#choices.map((choice) => choice.finishReason).filter((reason) => reason !== null);
  }

  get finishedCount(): number {
    let count = 0;
    for (const choice of this.#choices) if (choice.finishReason !== null) count++;
    return count;
  }

  get empty(): boolean {
    return this.#choices.every((choice) => choice.empty);
  }

  get blank(): boolean {
    return this.#choices.every((choice) => choice.blank);
  }

  get model(): string | undefined {
    return this.#model;
  }

  get id(): string | undefined {
    return this.#id;
  }

  /** How the provider says it was served. */
  get serviceTier(): string | undefined {
    return this.#serviceTier;
  }

  get systemFingerprint(): string | undefined {
    return this.#systemFingerprint;
  }

  /** A Responses stream names its tier at its end only, so that the last word counts. */
  #named({ id, service_tier: tier, system_fingerprint: fingerprint }: Fields): void {
    if (typeof id === 'string' && id !== '') this.#id = id;
    if (typeof tier === 'string') this.#serviceTier = tier;
    if (typeof fingerprint === 'string') this.#systemFingerprint = fingerprint;
  }

  /** Choices stay in the order of their indexes, whichever comes first. */
  #choice(named: unknown): ChoiceBuilder {
    const index = typeof named === 'number' && Number.isSafeInteger(named) && named >= 0 ? named : 0;
    const first = this.#choices[0];
    if (first?.index === index) return first;
    let at = this.#choices.findIndex((choice) => choice.index >= index);
    if (at === -1) at = this.#choices.length;
    const found = this.#choices[at];
    if (found?.index === index) return found;
    const made = this.#makeChoice(index);
    this.#choices.splice(at, 0, made);
    return made;
  }

  /** The last report counts, as reports are cumulative; zeros do not undo an earlier one. */
  #noteUsage(usage: unknown): void {
    if (usage === undefined || usage === null) return;
    if (this.#rawUsage !== undefined && !isCounted(usage)) return;
    this.#rawUsage = usage;
    this.#usage = undefined;
  }
}

const NO_CHOICE: Omit<AnswerChoice, 'index'> = Object.freeze({
  text: '',
  reasoning: '',
  refusal: '',
  toolCalls: Object.freeze([]),
  finishReason: null,
});

/** Where vendors put the usage of a chunk: at the top, under their own name, or in the first choice. */
function chatUsage(fields: Fields): unknown {
  const usage = fields['usage'];
  if (usage !== undefined && usage !== null) return usage;
  const nested = asFields(fields['x_groq'])?.['usage'];
  if (nested !== undefined) return nested;
  const choices = fields['choices'];
  return Array.isArray(choices) ? asFields(choices[0])?.['usage'] : undefined;
}

function asFields(value: unknown): Fields | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
}

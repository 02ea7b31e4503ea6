import type { Answer, AnswerChoice } from '../core/answer.ts';
import type { Usage } from '../core/hints.ts';
import { ChoiceBuilder } from './ChoiceBuilder.ts';
import type { AnswerFindings } from './ChunkReader.ts';
import { isFields } from './errorBody.ts';
import type { Fields } from './errorBody.ts';
import { addResponseEvent } from './responseEvents.ts';
import { isCounted, readUsage } from './usage.ts';

type MakeChoice = (index: number) => ChoiceBuilder;

// Set by the class, which alone can reach what it has.

/** An assembler for those who want to hear of each piece: by the builders of its choices. */
export let assemblerOf: (makeChoice: MakeChoice) => AnswerAssembler;

/** What the answer says of itself. */
export let findingsOf: (answer: AnswerAssembler) => AnswerFindings;

/** Whether there are at least so many choices, and each has its finish reason. */
export let isFinished: (answer: AnswerAssembler, asked: number) => boolean;

/**
 * Puts an answer together from chat chunks, from Responses events, or from either API's whole body. Each chunk costs its
 * own length and each snapshot the number of its choices: text is appended, and what did not change is shared with the
 * snapshot before.
 *
 * `addChat` and `addResponses` throw SluiceError `upstream_body_invalid` for a piece of a tool call that could belong to
 * several; what came before it is kept. Anything else that is not understood is ignored.
 */
export class AnswerAssembler {
  #makeChoice: MakeChoice | undefined;
  #choices: readonly ChoiceBuilder[] = [];
  #rawUsage: unknown;
  #usage: Usage | undefined;
  #model: string | undefined;
  #id: string | undefined;
  #serviceTier: string | undefined;
  #systemFingerprint: string | undefined;
  #restarts = 0;

  static {
    // No option and no member of the class, which is public: builders and findings are not.
    assemblerOf = (makeChoice) => {
      const assembler = new AnswerAssembler();
      assembler.#makeChoice = makeChoice;
      return assembler;
    };
    findingsOf = (answer) => ({
      usage: answer.usage,
      responseId: answer.#id,
      responseModel: answer.#model,
      serviceTier: answer.#serviceTier,
      systemFingerprint: answer.#systemFingerprint,
      finishReasons: answer.finishReasons,
    });
    isFinished = (answer, asked) => {
      for (const choice of answer.#choices) if (choice.finishReason === null) return false;
      return answer.#choices.length >= asked;
    };
  }

  /** @returns Whether the chunk held content. */
  addChat(chunk: unknown): boolean {
    if (!isFields(chunk)) return false;
    const { model, usage, choices } = chunk;
    if (typeof model === 'string' && model !== '') this.#model = model;
    this.#named(chunk);
    // Noted first: a piece of a tool call may throw.
    this.#noteUsage(usage ?? vendorUsage(chunk));
    let held = false;
    if (Array.isArray(choices)) {
      for (const choice of choices as unknown[]) {
        if (isFields(choice)) held = this.#choice(choice['index']).addChoice(choice) || held;
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
    if (!isFields(event)) return false;
    const { response: inner } = event;
    const response = isFields(inner) ? inner : event['object'] === 'response' ? event : undefined;
    if (response !== undefined) {
      if (typeof response['model'] === 'string') this.#model = response['model'];
      this.#named(response);
      this.#noteUsage(response['usage']);
    }
    return addResponseEvent(this.#choice(0), event);
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
    const reasons: string[] = [];
    for (const { finishReason } of this.#choices) if (finishReason !== null) reasons.push(finishReason);
    return reasons;
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
    for (const choice of this.#choices) if (!choice.blank) return false;
    return true;
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
    let at = 0;
    let found = first;
    while (found !== undefined && found.index < index) found = this.#choices[++at];
    if (found?.index === index) return found;
    const made = this.#makeChoice?.(index) ?? new ChoiceBuilder(index);
    this.#choices = this.#choices.toSpliced(at, 0, made);
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

/** Where vendors put the usage of a chunk but at its top: under their own name, or in the first choice. */
function vendorUsage({ x_groq: vendor, choices }: Fields): unknown {
  if (isFields(vendor) && vendor['usage'] !== undefined) return vendor['usage'];
  const first: unknown = Array.isArray(choices) ? choices[0] : undefined;
  return isFields(first) ? first['usage'] : undefined;
}

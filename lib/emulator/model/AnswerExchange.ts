import { outputTokens } from './AnswerPlan.ts';
import type { AnswerPlan } from './AnswerPlan.ts';
import type { Exchange } from './Exchange.ts';
import type { DrawnFault } from './faults.ts';
import type { RequestFacts } from './request.ts';
import type { ProviderStep, Steps } from './steps.ts';

/** An exchange that gets an answer, or a fault in place of one. It counts the tokens of the steps that are taken. */
export class AnswerExchange implements Exchange, Iterator<ProviderStep, void> {
  readonly ordinal: number;
  readonly requestId: string;
  readonly reservedTokens: number;
  readonly verdict: 'admitted' | 'outage';
  readonly refusal = undefined;
  readonly fault: string | undefined;
  readonly #facts: RequestFacts;
  readonly #answer: AnswerPlan;
  readonly #source: Iterator<ProviderStep, void>;
  /** Undefined once it has ended. */
  #release: ((usedTokens: number) => void) | undefined;
  #sent = 0;

  /** `release`: called once, where it was admitted, with the tokens of prompt and output. */
  constructor(
    requestId: string,
    verdict: 'admitted' | 'outage',
    request: { readonly ordinal: number; readonly facts: RequestFacts; readonly reserved: number },
    fault: DrawnFault | undefined,
    answer: AnswerPlan,
    steps: Steps,
    release: ((usedTokens: number) => void) | undefined,
  ) {
    this.ordinal = request.ordinal;
    this.requestId = requestId;
    this.reservedTokens = request.reserved;
    this.verdict = verdict;
    this.fault = fault?.kind === 'pass' ? undefined : fault?.kind;
    this.#facts = request.facts;
    this.#answer = answer;
    this.#source = steps[Symbol.iterator]() as Iterator<ProviderStep, void>;
    this.#release = release;
  }

  get model(): string {
    return this.#facts.model;
  }

  get conversation(): string | undefined {
    return this.#facts.conversation;
  }

  get stream(): boolean {
    return this.#facts.stream;
  }

  get promptTokens(): number {
    return this.#facts.promptTokens;
  }

  get steps(): Iterator<ProviderStep, void> {
    return this;
  }

  next(): IteratorResult<ProviderStep, void> {
    const result = this.#source.next();
    if (result.done !== true && result.value.kind === 'event') this.#sent += result.value.tokens;
    return result;
  }

  sentTokens(): number {
    return this.#sent;
  }

  end(): void {
    const release = this.#release;
    this.#release = undefined;
    release?.(this.promptTokens + this.#outputTokens());
  }

  #outputTokens(): number {
    const { stream, request } = this.#facts;
    if (stream) return this.#sent;
    return request.api === 'embeddings' ? 0 : outputTokens(this.#answer).all;
  }
}

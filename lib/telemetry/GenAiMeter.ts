import type { CallStart } from '../core/CallObserver.ts';
import type { BoundedNames } from './BoundedNames.ts';
import type { CallTally, EventOf } from './CallTally.ts';
import type { GenAiBook, GenAiOperation } from './GenAiBook.ts';
import { operationOf } from './operationOf.ts';
import type { OutcomeName } from './outcomeName.ts';
import { providerOf } from './providerOf.ts';
import type { ProviderOption } from './providerOf.ts';

/** Turns what is known of a call, as it ends, into the GenAI metrics. */
export class GenAiMeter {
  readonly #book: GenAiBook;
  readonly #models: BoundedNames;
  readonly #responseModels: BoundedNames;
  readonly #provider: ProviderOption | undefined;

  constructor(
    book: GenAiBook,
    models: BoundedNames,
    responseModels: BoundedNames,
    provider: ProviderOption | undefined,
  ) {
    this.#book = book;
    this.#models = models;
    this.#responseModels = responseModels;
    this.#provider = provider;
  }

  attemptEnded(start: CallStart, call: CallTally, { model, usage, responseModel }: EventOf<'attempt.ended'>): void {
    if (!this.#book.countsUsage) return;
    this.#book.usage(usage, this.#operation(start, call, model, responseModel));
  }

  callEnded(
    start: CallStart,
    call: CallTally,
    event: EventOf<'call.ended'>,
    outcome: OutcomeName,
    error: string | undefined,
  ): void {
    const { last, firstContentAtMs } = call;
    const operation = this.#operation(start, call, start.model ?? event.model, last?.responseModel);
    // The time of one that its caller ended says nothing of the provider.
    if (outcome !== 'cancelled') this.#book.duration(event.durationMs / 1000, operation, error);
    if (start.stream && firstContentAtMs !== undefined) {
      this.#book.timeToFirstChunk((firstContentAtMs - start.atMs) / 1000, operation);
    }
    if (outcome !== 'success') return;
    if (start.stream && last?.outcome === 'success' && last.contentChunks > 1) {
      this.#book.timePerOutputChunk(last.contentMs / 1000 / (last.contentChunks - 1), operation);
    }
    if (call.tokens.length === 0) return this.#book.tokens(0, 0, operation);
    for (const { model, responseModel, inputTokens, outputTokens } of call.tokens) {
      this.#book.tokens(inputTokens, outputTokens, this.#operation(start, call, model, responseModel));
    }
  }

  #operation(
    start: CallStart,
    call: CallTally,
    model: string | undefined,
    responseModel: string | undefined,
  ): GenAiOperation {
    call.provider ??= providerOf(this.#provider, start.server, start.model);
    const served = this.#responseModels.of(responseModel);
    return this.#book.operation(operationOf(start), call.provider, this.#models.of(model), served);
  }
}

import type { Usage } from '../core/hints.ts';
import { isRestart } from '../core/restart.ts';
import { isOfResponses } from '../operators/answerPart.ts';
import type { AnswerPart } from '../operators/answerPart.ts';
import { assemblerOf } from '../wire/AnswerAssembler.ts';
import type { AnswerEvent } from './AnswerEvent.ts';
import { PieceReader } from './PieceReader.ts';

/** Reads the parts of one answer as events without ids. Keeps no text, so that a stream costs the same however long it is. */
export class AnswerReader {
  #events: AnswerEvent[] = [];
  readonly #assembler = assemblerOf((index) => new PieceReader(index, (event) => this.#events.push(event)));
  #told = false;

  /** @throws SluiceError `upstream_body_invalid` for a piece of a tool call that could belong to several. */
  read(part: AnswerPart): readonly AnswerEvent[] {
    if (isRestart(part)) return this.#restart(part.code, part.model);
    try {
      if (isOfResponses(part)) this.#assembler.addResponses(part);
      else this.#assembler.addChat(part);
    } catch (error) {
      this.#events = [];
      throw error;
    }
    return this.#take();
  }

  /** The last events, at the end of a stream that did not fail. `counted`: usage that no part told. */
  end(counted: Usage | undefined): readonly AnswerEvent[] {
    const assembler = this.#assembler;
    if (counted) assembler.addUsage(counted);
    const { usage, model, finishReasons, choiceCount, empty } = assembler;
    if (usage) this.#events.push({ type: 'usage', data: usage });
    const finishReason = assembler.snapshot().finishReason;
    const reasons = choiceCount > 1 ? { finishReasons } : {};
    this.#events.push({ type: 'done', data: { finishReason, ...reasons, model: model ?? null, empty } });
    return this.#take();
  }

  #restart(code: string, model: string | undefined): readonly AnswerEvent[] {
    this.#assembler.restart();
    if (!this.#told) return [];
    this.#told = false;
    return [{ type: 'reset', data: { code, model: model ?? null } }];
  }

  #take(): readonly AnswerEvent[] {
    const events = this.#events;
    if (events.length > 0) {
      this.#events = [];
      this.#told = true;
    }
    return events;
  }
}

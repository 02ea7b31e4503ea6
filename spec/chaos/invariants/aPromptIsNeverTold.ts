import { predictAnswer } from '../../../lib/emulator/index.ts';
import { isSluiceError } from '../../../lib/index.ts';
import { PROMPT_MARK } from '../plan/requestOf.ts';
import type { Invariant } from './Invariant.ts';

/** The beginning of every answer, which names it: no other text has it. */
const NAME_LENGTH = 8;

/** Neither what was asked nor what was answered is in an event, an error or a span. */
export const aPromptIsNeverTold: Invariant = {
  name: 'aPromptIsNeverTold',
  promise: 'no event, error or span holds a prompt or an answer',
  watch(stage, fail) {
    const answers: string[] = [];
    const check = (where: string, value: unknown): void => {
      const text = JSON.stringify(value) ?? '';
      if (text.includes(PROMPT_MARK)) fail(`${where} holds a prompt`);
      for (const answer of answers) if (text.includes(answer)) fail(`${where} holds an answer`);
    };
    return {
      see(fact) {
        switch (fact.kind) {
          case 'sent': {
            const { request, client } = fact.attempt;
            const { tokens } = stage.plan.providers[client]?.options ?? {};
            const seed = stage.plan.seed + Object.keys(stage.plan.providers).indexOf(client);
            const answer = predictAnswer(request, { seed, tokens: 2 });
            // One token is only a number, which may be part of any identifier.
            if (answer.length > NAME_LENGTH && tokens !== 1) answers.push(answer);
            // What was told of calls that ended long ago is no longer told.
            if (answers.length > 20) answers.shift();
            return;
          }
          case 'told':
            return check(`the event ${fact.event.type}`, fact.event);
          case 'span':
            return check(`the span ${fact.span.name}`, fact.span.attributes);
          case 'ended': {
            const { error } = fact;
            if (error === undefined) return;
            const stack = isSluiceError(error) ? [error.message, error.stack, error.cause] : [];
            return check(`the error of call ${fact.call.index}`, [error, stack]);
          }
          default:
        }
      },
    };
  },
};

import { answerKey, answerText, matchPrefix } from '../../../lib/emulator/model/answerText.ts';
import { prefixOf } from '../../../lib/emulator/model/request.ts';
import { PROVIDER_DEFAULTS } from '../../../lib/emulator/model/settings.ts';
import type { AttemptTrace, CallTrace } from '../run/Fact.ts';
import { midStreamOf } from '../run/midStreamOf.ts';
import type { Invariant, Stage } from './Invariant.ts';

/** What a caller holds is what came off the wire for it, no piece missing, none twice; and an answer is a whole one. */
export const textArrivesOnceAndWhole: Invariant = {
  name: 'textArrivesOnceAndWhole',
  promise: 'a caller gets each piece of text once, in order, and what is called an answer is all of it',
  watch(stage, fail) {
    return {
      see(fact) {
        if (fact.kind === 'value') {
          const { call } = fact;
          if (call.restarts > 0 && call.planned.restarts !== true) fail(`call ${call.index} was begun anew, unasked`);
          const came = cameFor(call);
          if (!came.startsWith(call.text)) fail(`call ${call.index} got ${differ(call.text, came)}`);
        }
        if (fact.kind !== 'ended' || fact.call.leftMs !== undefined) return;
        const { call } = fact;
        const keeps = call.planned.api === 'complete' || midStreamOf(call) === 'buffer';
        const came = keeps && call.code !== undefined ? '' : cameFor(call);
        if (call.text !== came) fail(`call ${call.index} ended with ${differ(call.text, came)}`);
        if (call.code !== undefined) return;
        const last = call.attempts.at(-1);
        if (last === undefined) fail(`call ${call.index} was answered by nobody`);
        // Whether an answer is whole is up to the SDK of a call that brings its own transport.
        else if (call.planned.by !== 'call' && last.text !== wholeOf(stage, last))
          fail(`call ${call.index} was answered with "${short(last.text)}"`);
      },
    };
  },
};

/** What has come for the caller, as it may see it. */
function cameFor(call: CallTrace): string {
  const { attempts, startedOverAt, planned } = call;
  if (planned.by === 'gateway') {
    const mode = midStreamOf(call);
    // Nothing of it is seen before it is whole.
    if (mode === 'buffer') return attempts.at(-1)?.text ?? '';
    if (mode !== 'fail') return goneOnUnseen(attempts);
  }
  // Of the attempts since it last began anew: without a continuation only one of them can have brought anything.
  return attempts
    .slice(startedOverAt)
    .map(({ text }) => text)
    .join('');
}

/** What was begun anew is passed on from where it goes beyond what was: as long as it is the same. */
function goneOnUnseen(attempts: readonly AttemptTrace[]): string {
  let shown = '';
  for (const { text, request } of attempts) {
    const whole = (prefixOf(request['messages'] ?? request['input']) ?? '') + text;
    if (whole.startsWith(shown)) shown = whole;
    else if (!shown.startsWith(whole)) return shown;
  }
  return shown;
}

/** What its provider answers to it; after a beginning of that text, the rest. */
function wholeOf({ plan }: Stage, { client, request }: AttemptTrace): string {
  const seed = plan.seed + Object.keys(plan.providers).indexOf(client);
  const { tokens = PROVIDER_DEFAULTS.tokens } = plan.providers[client]?.options ?? {};
  const limit = request['max_completion_tokens'] ?? request['max_output_tokens'] ?? Infinity;
  const key = answerKey(request, seed);
  const prefix = prefixOf(request['messages'] ?? request['input']);
  const { tokens: begun, extraChars } = (prefix === undefined ? undefined : matchPrefix(key, prefix)) ?? NOT_BEGUN;
  const count = Math.min(Math.max(0, Number(tokens) - begun), Number(limit));
  return answerText(key, begun, begun + count).slice(extraChars);
}

const NOT_BEGUN = { tokens: 0, extraChars: 0 };

/** Where two texts part, as answers are long. */
function differ(got: string, came: string): string {
  let at = 0;
  while (at < got.length && got[at] === came[at]) at++;
  return `${got.length} characters of the ${came.length} that came, and others from ${at} on: "${short(got.slice(at))}" for "${short(came.slice(at))}"`;
}

function short(text: string): string {
  return text.length > 40 ? `${text.slice(0, 40)}...` : text;
}

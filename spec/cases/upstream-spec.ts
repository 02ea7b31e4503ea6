import { expect } from 'chai';
import { casesOf } from '../helpers/cases.ts';
import { asResponses } from '../helpers/cases/asResponses.ts';
import { runUpstream } from '../helpers/cases/runUpstream.ts';
import type { ScriptedAnswer, UpstreamInput } from '../helpers/cases/upstreamCase.ts';
import { assertUpstream } from './assertUpstream.ts';
import { LATER } from './later.ts';
import { UNFIT } from './unfit.ts';

type UpstreamExpect = Record<string, unknown>;

/** Kinds whose rule is the same in the Responses API; that of `[DONE]` and of usage is not. */
const OF_BOTH_APIS: ReadonlySet<string> = new Set([
  'error-in-200',
  'midstream-reset',
  'replay-dup',
  'fallback-partial',
  'idle-timeout',
  'cancel-propagation',
]);

/** What only chat has a word for. */
const OF_CHAT: ReadonlySet<string> = new Set(['role_chunks_seen_by_caller_max', 'finish_reason', 'tool_calls']);

describe('public reports of form upstream', () => {
  for (const each of casesOf<UpstreamInput, UpstreamExpect>('upstream')) {
    const { id, kind, input, symptom, expect: expected } = each;
    const reason = UNFIT[id] ?? LATER[id];
    const title = `${id}: ${expected.must} [${symptom}]`;
    if (reason !== undefined) {
      it.skip(`${id}: ${reason}`);
      continue;
    }
    const { api = 'chat' } = input;
    it(title, async () => assertUpstream(await runUpstream(input, { api }), expected, input));

    if (api === 'chat' && input.request?.['stream'] === true && OF_BOTH_APIS.has(kind)) {
      it(`through respond, ${title}`, async () => {
        const translated = asResponses(input);
        const kept = Object.entries(expected).filter(([key]) => !OF_CHAT.has(key));
        const facts = await runUpstream(translated, { api: 'responses' });
        assertUpstream(facts, Object.fromEntries(kept), translated);
      });
    }
    for (const status of (expected['also_retryable'] ?? []) as readonly number[]) {
      it(`${id} with status ${status}: it is tried again`, async () => {
        const { requests, result } = await runUpstream(withStatus(input, status));
        expect([requests.length, result]).to.deep.equal([2, 'ok']);
      });
    }
    for (const status of (expected['also_not_retryable'] ?? []) as readonly number[]) {
      it(`${id} with status ${status}: it is not tried again`, async () => {
        const { requests, result } = await runUpstream(withStatus(input, status));
        expect([requests.length, result]).to.deep.equal([1, 'error']);
      });
    }
    const classified = expected['attempts_with_custom_classifier'];
    if (classified !== undefined) {
      it(`${id} with a classifier of the user: it is asked first`, async () => {
        const { requests, result } = await runUpstream(input, { classify: () => 'rate_limited' });
        expect([requests.length, result]).to.deep.equal([classified, 'ok']);
      });
    }
  }
});

function withStatus(input: UpstreamInput, status: number): UpstreamInput {
  const [first, ...rest] = input.script as readonly ScriptedAnswer[];
  return { ...input, script: [{ ...first, status }, ...rest] };
}

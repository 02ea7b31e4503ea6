import { casesOf } from '../helpers/cases.ts';
import type { CallsInput } from '../helpers/cases/callsCase.ts';
import { policyDriver } from '../helpers/cases/policyDriver.ts';
import { runCalls } from '../helpers/cases/runCalls.ts';
import { assertCalls } from './assertCalls.ts';
import { BY_POLICY_ONLY, OF_OPERATORS_ONLY } from './drivers.ts';
import { LATER } from './later.ts';
import { UNFIT } from './unfit.ts';

describe('public reports of form calls', function () {
  this.timeout(30_000);
  this.slow(5_000);

  for (const { id, input, symptom, expect: expected } of casesOf<CallsInput, Record<string, unknown>>('calls')) {
    const reason = UNFIT[id] ?? LATER[id];
    if (reason !== undefined) {
      it.skip(`${id}: ${reason}`);
      continue;
    }
    const title = `${id}: ${expected.must} [${symptom}]`;
    if (BY_POLICY_ONLY[id] === undefined) it(title, async () => assertCalls(await runCalls(input), expected, input));
    if (input.steps.some(({ op }) => OF_OPERATORS_ONLY.has(op))) continue;
    it(`by policy, ${title}`, async () => assertCalls(await runCalls(tenthOf(input), policyDriver), expected, input));
  }
});

/** A call by policy takes longer than a turn by hand; `npm run prove policy-memory` has the whole number. */
function tenthOf({ steps, ...rest }: CallsInput): CallsInput {
  const fewer = steps.map(({ conversations, ...step }) =>
    conversations === undefined ? step : { ...step, conversations: conversations / 10 },
  );
  return { ...rest, steps: fewer };
}

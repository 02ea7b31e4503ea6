import { casesOf } from '../helpers/cases.ts';
import type { CallsInput } from '../helpers/cases/callsCase.ts';
import { runCalls } from '../helpers/cases/runCalls.ts';
import { assertCalls } from './assertCalls.ts';
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
    it(`${id}: ${expected.must} [${symptom}]`, async () => assertCalls(await runCalls(input), expected, input));
  }
});

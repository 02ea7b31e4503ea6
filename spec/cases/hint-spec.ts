import { expect } from 'chai';
import { classifyResponse } from '../../lib/wire/classify.ts';
import { headerReader } from '../../lib/wire/headers.ts';
import { readHints } from '../../lib/wire/hints.ts';
import { casesOf } from '../helpers/cases.ts';
import { UNFIT } from './unfit.ts';

interface HintInput {
  readonly now: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

interface HintExpect {
  readonly hint_ms?: number | null;
  readonly hint_ms_in?: readonly (number | null)[];
  readonly hint_ms_min?: number;
  readonly hint_ms_max?: number;
  readonly retry?: boolean;
  readonly also?: readonly (Partial<HintInput> & HintExpect)[];
}

describe('public reports of form hint', () => {
  for (const { id, symptom, input, expect: expected } of casesOf<HintInput, HintExpect>('hint')) {
    const unfit = UNFIT[id];
    if (unfit !== undefined) {
      it.skip(`${id}: ${unfit}`);
      continue;
    }
    const variants: readonly (HintInput & HintExpect)[] = [
      { ...input, ...expected },
      ...(expected.also ?? []).map((also) => ({ ...input, ...also })),
    ];
    variants.forEach((variant, at) => {
      it(`${id}${at === 0 ? '' : ` (${at})`}: ${expected.must} [${symptom}]`, () => {
        const { status, body } = variant;
        const head = { status, headers: headerReader(variant.headers), body, wallNowMs: Date.parse(variant.now) };
        const hintMs = readHints(head)?.retryAfterMs ?? null;

        if (variant.hint_ms !== undefined) expect(hintMs).to.equal(variant.hint_ms);
        if (variant.hint_ms_in !== undefined) expect(variant.hint_ms_in).to.include(hintMs);
        if (variant.hint_ms_min !== undefined) expect(hintMs).to.be.at.least(variant.hint_ms_min);
        if (variant.hint_ms_max !== undefined) expect(hintMs).to.be.at.most(variant.hint_ms_max);
        const error = classifyResponse(head);
        expect(error.retryAfterMs ?? null).to.equal(hintMs);
        if (variant.retry !== undefined) expect(error.retryable).to.equal(variant.retry);
      });
    });
  }
});

import { readFileSync } from 'node:fs';

/** One public bug report, cut to its smallest input. */
export interface Case<Input = Record<string, unknown>, Expect = Record<string, unknown>> {
  readonly id: string;
  readonly kind: string;
  readonly form: string;
  readonly symptom: string;
  readonly input: Input;
  readonly expect: Expect & { readonly must: string };
}

/** The cases of one form, in the order of the file. */
export function casesOf<Input, Expect>(form: string): readonly Case<Input, Expect>[] {
  const text = readFileSync(new URL('../fixtures/cases/public-reports.jsonl', import.meta.url), 'utf8');
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Case<Input, Expect>)
    .filter((each) => each.form === form);
}

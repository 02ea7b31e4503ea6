import { readFileSync } from 'node:fs';

/** One public bug report, or a variant of one, cut to its smallest input. */
export interface Case<Input = Record<string, unknown>, Expect = Record<string, unknown>> {
  readonly id: string;
  readonly kind: string;
  readonly form: string;
  readonly symptom: string;
  readonly input: Input;
  readonly expect: Expect & { readonly must: string };
}

/** Reports as they were collected, and variants of the same kinds: other providers, spellings, orders and splits. */
const FILES = ['public-reports.jsonl', 'own-variants.jsonl'];

/** Every case, in the order of the files. */
export function allCases(): readonly Case[] {
  return FILES.flatMap((file) => {
    const text = readFileSync(new URL(`../fixtures/cases/${file}`, import.meta.url), 'utf8');
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Case);
  });
}

/** The cases of one form. */
export function casesOf<Input, Expect>(form: string): readonly Case<Input, Expect>[] {
  return allCases().filter((each) => each.form === form) as unknown as readonly Case<Input, Expect>[];
}

import { closest } from './closest.ts';
import { contradiction } from './Contradiction.ts';
import type { Contradiction } from './Contradiction.ts';
import type { Policy } from './Policy.ts';
import type { PolicyInput } from './PolicyInput.ts';
import type { PolicyPath } from './PolicyProblem.ts';
import { shown } from './shown.ts';

/** Where a list of fallbacks stands within its model: `fallback`, or `fallbackOn` and the code. */
type Place = readonly [string] | readonly [string, string];

/** `input` is the policy with its preset, `policy` what it means. */
export function* fallbackProblems(input: PolicyInput, policy: Policy): Generator<Contradiction> {
  const written = input.models ?? {};
  const names = Object.keys(written).filter((name) => name !== 'default');
  for (const [name, model] of Object.entries(written)) {
    const lists: (readonly [Place, readonly string[]])[] = [[['fallback'], model.fallback ?? []]];
    for (const [code, list] of Object.entries(model.fallbackOn ?? {})) lists.push([['fallbackOn', code], list ?? []]);
    for (const [place, list] of lists) {
      yield* listProblems(
        ['models', name, ...place],
        list,
        name,
        Object.hasOwn(written, 'default') ? undefined : names,
      );
    }
  }
  const codes = new Set(Object.values(policy.models).flatMap(({ fallbackOn }) => Object.keys(fallbackOn)));
  const places: Place[] = [['fallback'], ...[...codes].map((code) => ['fallbackOn', code] as const)];
  for (const place of places) yield* cycles(place, policy, names);
}

/** `known`: the only models that there are. */
function* listProblems(
  path: PolicyPath,
  list: readonly string[],
  model: string,
  known: readonly string[] | undefined,
): Generator<Contradiction> {
  for (const [i, target] of list.entries()) {
    const at = [...path, i];
    if (target === model || target === 'default') yield contradiction(at, 'another model', shown(target, false));
    else if (list.indexOf(target) < i) yield contradiction(at, 'each model once', shown(target, false));
    else if (known && !known.includes(target)) {
      const expected = 'a model that models lists, or `default: {}` there for those that it does not';
      yield contradiction(at, expected, shown(target, false), { suggestion: closest(target, known) });
    }
  }
}

/** Follows each list once; a step back to a model on the way there is a cycle. */
function* cycles(place: Place, policy: Policy, names: readonly string[]): Generator<Contradiction> {
  const targetsOf = (name: string): readonly string[] => {
    const model = Object.hasOwn(policy.models, name) ? policy.models[name] : undefined;
    const lists = place[1] === undefined ? { fallback: model?.fallback } : (model?.fallbackOn ?? {});
    return (lists as Readonly<Record<string, readonly string[] | undefined>>)[place[1] ?? place[0]] ?? [];
  };
  const left = new Set<string>();
  for (const start of names) {
    if (left.has(start)) continue;
    const way: { readonly name: string; readonly targets: readonly string[]; next: number }[] = [];
    const enter = (name: string): void => void way.push({ name, targets: targetsOf(name), next: 0 });
    enter(start);
    for (let last = way.at(-1); last; last = way.at(-1)) {
      const target = last.targets[last.next++];
      if (target === undefined) {
        left.add(last.name);
        way.pop();
        continue;
      }
      const met = way.findIndex(({ name }) => name === target);
      if (met < 0 && !left.has(target)) enter(target);
      // A model that names itself has been told already.
      if (met < 0 || (met === way.length - 1 && target === last.name)) continue;
      const round = [...way.slice(met).map(({ name }) => name), target];
      yield contradiction(['models', target, ...place], 'no way back to the model itself', round.join(' -> '), {
        from: round.map((name) => ['models', name, ...place]),
      });
    }
  }
}

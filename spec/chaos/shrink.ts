import type { ChaosPlan } from './plan/ChaosPlan.ts';

type Fails = (plan: ChaosPlan) => Promise<boolean>;

/**
 * The smallest plan that still fails, as far as leaving out goes: calls, shocks and faults first by halves, then one by
 * one; then every part of the policy, the providers and the calls. `fails` plays a plan; `stop` says when to be content.
 */
export async function shrink(plan: ChaosPlan, fails: Fails, stop: () => boolean = () => false): Promise<ChaosPlan> {
  let smallest = plan;
  for (let size = Infinity; sizeOf(smallest) < size && !stop();) {
    size = sizeOf(smallest);
    for (const path of listsOf(smallest)) smallest = await withFewer(smallest, path, fails, stop);
    for (const path of partsOf(smallest)) smallest = await without(smallest, path, fails, stop);
  }
  return smallest;
}

/** How much there is in a plan: calls, faults, shocks and settings. */
export function sizeOf(plan: ChaosPlan): number {
  return JSON.stringify(plan).length;
}

type Path = readonly (string | number)[];

/** Lists that may be shorter. Calls first: everything else is quicker with few of them. */
function listsOf({ providers }: ChaosPlan): readonly Path[] {
  const faults = Object.keys(providers).flatMap((client) =>
    ['randomFaults', 'script', 'outages'].map((list) => ['providers', client, 'options', list]),
  );
  return [['calls'], ['shocks'], ...faults, ['calls']];
}

/** Leaves out ever smaller stretches of a list, as long as what is left fails. */
async function withFewer(plan: ChaosPlan, path: Path, fails: Fails, stop: () => boolean): Promise<ChaosPlan> {
  let smallest = plan;
  const list = (): readonly unknown[] => (at(smallest, path) as readonly unknown[] | undefined) ?? [];
  for (let length = Math.ceil(list().length / 2); length >= 1; length = length === 1 ? 0 : Math.ceil(length / 2)) {
    for (let from = 0; from < list().length && !stop();) {
      const shorter = put(smallest, path, [...list().slice(0, from), ...list().slice(from + length)]);
      if (await fails(shorter)) smallest = shorter;
      else from += length;
    }
  }
  return smallest;
}

/** Every setting of policies, providers, shocks and calls, outer ones first. */
function partsOf({ policy, providers, shocks, calls }: ChaosPlan): readonly Path[] {
  const paths: Path[] = [['close'], ...below(['policy'], policy)];
  for (const client of Object.keys(providers)) {
    paths.push(...below(['providers', client, 'options'], providers[client]?.options));
  }
  shocks.forEach((shock, i) => {
    if (shock.kind === 'reload') paths.push(...below(['shocks', i, 'policy'], shock.policy));
  });
  calls.forEach((call, i) => paths.push(...Object.keys(call).map((key) => ['calls', i, key])));
  return paths;
}

function below(path: Path, value: unknown): Path[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [];
  return Object.entries(value).flatMap(([key, inner]) => [[...path, key], ...below([...path, key], inner)]);
}

async function without(plan: ChaosPlan, path: Path, fails: Fails, stop: () => boolean): Promise<ChaosPlan> {
  if (stop() || at(plan, path) === undefined) return plan;
  const smaller = put(plan, path, undefined);
  return (await fails(smaller)) ? smaller : plan;
}

function at(value: unknown, path: Path): unknown {
  return path.reduce<unknown>((inner, key) => (inner as Record<string | number, unknown> | undefined)?.[key], value);
}

/** A copy with another value there; `undefined` leaves the place out. */
function put<T>(value: T, [key, ...rest]: Path, placed: unknown): T {
  if (key === undefined) return placed as T;
  const inner = put((value as Record<string | number, unknown>)[key], rest, placed);
  if (Array.isArray(value)) return value.map((one: unknown, i) => (i === key ? inner : one)) as T;
  const { [key]: _, ...others } = value as Record<string | number, unknown>;
  return (inner === undefined ? others : { ...others, [key]: inner }) as T;
}

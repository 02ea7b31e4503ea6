import { atOf } from './PolicyProblem.ts';
import type { PolicyPath } from './PolicyProblem.ts';

/** What is used of a JSON Schema here. */
interface SchemaNode {
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly additionalProperties?: SchemaNode | boolean;
  readonly items?: SchemaNode;
  readonly anyOf?: readonly SchemaNode[];
}

interface Place {
  readonly path: PolicyPath;
  readonly node: SchemaNode;
}

/** How far below an object a setting is looked for. */
const DEEPEST = 3;

/**
 * Where a setting belongs that stands at the wrong place: somewhere within the object that holds it, or else in one of those
 * around it, the nearest first. `root`: a JSON Schema without references.
 */
export function elsewhere(root: object, holder: PolicyPath, key: string): string | undefined {
  const around: Place[] = [{ path: [], node: root }];
  for (const step of holder) {
    const last = around.at(-1) as Place;
    const next = inside(last, step);
    if (next === undefined) return undefined;
    around.push(next);
  }
  const deeper = below(around.pop() as Place, key);
  if (deeper) return atOf(deeper);
  const holding = around.findLast(({ node }) => ownOf(node, key));
  return holding && atOf([...holding.path, key]);
}

function below(from: Place, key: string): PolicyPath | undefined {
  let level = [from];
  for (let depth = 0; depth <= DEEPEST; depth++) {
    const holder = level.find(({ node }) => ownOf(node, key));
    if (holder) return [...holder.path, key];
    level = level.flatMap(children);
  }
  return undefined;
}

function children(place: Place): Place[] {
  const { path, node } = place;
  const named = Object.entries(node.properties ?? {}).map(([name, child]) => ({ path: [...path, name], node: child }));
  const other = node.additionalProperties;
  if (typeof other === 'object') named.push({ path: [...path, 'default'], node: other });
  return [...named, ...alternatives(place)];
}

function alternatives({ path, node }: Place): Place[] {
  return (node.anyOf ?? []).map((form) => ({ path, node: form }));
}

function inside(place: Place, step: string | number): Place | undefined {
  const { path, node } = place;
  const other = typeof node.additionalProperties === 'object' ? node.additionalProperties : undefined;
  const child = typeof step === 'number' ? node.items : (ownOf(node, step) ?? other);
  if (child) return { path: [...path, step], node: child };
  return alternatives(place)
    .map((form) => inside(form, step))
    .find((found) => found !== undefined);
}

function ownOf({ properties = {} }: SchemaNode, name: string): SchemaNode | undefined {
  return Object.hasOwn(properties, name) ? properties[name] : undefined;
}

import type { Policy } from '../../policy/Policy.ts';

/** A model as OpenAI's API lists it. */
export interface ListedModel {
  readonly id: string;
  readonly object: 'model';
  readonly created: number;
  readonly owned_by: string;
}

/** The models that the policy lists. Those that it leaves to its default have no names here. */
export function modelList({ models }: Policy): readonly ListedModel[] {
  const { default: _, ...listed } = models;
  return Object.keys(listed).map((id) => ({ id, object: 'model', created: 0, owned_by: 'sluice' }));
}

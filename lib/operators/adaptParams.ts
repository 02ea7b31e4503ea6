/** How the parameters of a request change for a model. Read in this order. */
export interface ParamRules {
  /** Parameters that the model does not know. */
  readonly omit?: readonly string[] | undefined;
  /** Parameters that the model knows by another name: old name to new one. A new name that is given already stays. */
  readonly rename?: Readonly<Record<string, string>> | undefined;
  /** Parameters and their values, whatever the request says. */
  readonly set?: Readonly<Record<string, unknown>> | undefined;
}

/** Rules, or a function from the request to the one to send, which must not change what it is given. */
export type ParamAdaptation<R> = ParamRules | ((request: R) => R);

/**
 * The request as another model takes it. The request that was given is never changed, and without an adaptation it is
 * returned as it is.
 *
 * @throws whatever a function throws.
 *
 * @example
 * ```ts
 * import OpenAI from 'openai';
 * import { adaptParams, chat, fallbackModel } from 'sluice';
 * import type { ChatRequest, ParamRules } from 'sluice';
 *
 * const openai = new OpenAI();
 * const adaptations: Record<string, ParamRules> = {
 *   'gpt-5.5': { rename: { max_tokens: 'max_completion_tokens' }, omit: ['temperature'] },
 * };
 * const request: Omit<ChatRequest, 'model'> = {
 *   messages: [{ role: 'user', content: 'Hello' }],
 *   max_tokens: 500,
 *   temperature: 0,
 * };
 * const ask = (model: string) => chat(openai, adaptParams({ ...request, model }, adaptations[model]));
 * ask('deepseek-v3.2').pipe(fallbackModel(['gpt-5.5'], ask)).subscribe();
 * ```
 */
export function adaptParams<R extends object>(request: R, adaptation: ParamAdaptation<R> | undefined): R {
  if (adaptation === undefined) return request;
  if (typeof adaptation === 'function') return adaptation(request);
  const { omit = [], rename = {}, set = {} } = adaptation;
  if (omit.length === 0 && isEmpty(rename) && isEmpty(set)) return request;
  const names = new Map(Object.entries(rename));
  const kept = Object.entries(request).filter(([name]) => !omit.includes(name));
  const given = new Set(kept.map(([name]) => name));
  const renamed = kept.flatMap(([name, value]: [string, unknown]) => {
    const to = names.get(name);
    if (to === undefined) return [[name, value] as const];
    return given.has(to) && !names.has(to) ? [] : [[to, value] as const];
  });
  // Not by assignment: a parameter may be called `__proto__`.
  return Object.fromEntries([...renamed, ...Object.entries(set)]) as R;
}

function isEmpty(record: object): boolean {
  return Object.keys(record).length === 0;
}

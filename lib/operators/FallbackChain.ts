import { nonEmpty } from '../core/checks.ts';
import { invalidOption } from '../core/errors.ts';
import type { ErrorCode } from '../core/errors.ts';
import { CALL_IS_OVER } from './Turn.ts';

/** Models to ask by the code of the failure; `default` for every other code that leads anywhere. */
export type FallbackMap = Partial<Record<ErrorCode | 'default', readonly string[]>>;

/** Another model would refuse the same, or it is ours to mend. A map, or `onlyOn`, may name one all the same. */
const NOT_BY_DEFAULT: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'bad_request',
  'content_filtered',
  'invalid_request',
  'invalid_option',
  'invalid_policy',
  'spend_capped',
]);

export interface FallbackRules {
  readonly onlyOn: readonly ErrorCode[] | undefined;
  readonly except: readonly ErrorCode[] | undefined;
  /** Whether a model may be asked now. */
  readonly mayAsk: (model: string) => boolean;
}

/** @throws SluiceError `invalid_option` for a model named twice in one list, and for a code that ends the call. */
export function fallbackMap(models: readonly string[] | FallbackMap): FallbackMap {
  const map: FallbackMap = isList(models) ? { default: models } : models;
  for (const [code, list] of Object.entries(map)) {
    if (CALL_IS_OVER.has(code as ErrorCode)) throw invalidOption('models', 'without codes that end the call', code);
    if (!Array.isArray(list)) throw invalidOption(`models.${code}`, 'a list of models', list);
    for (const model of list as readonly string[]) nonEmpty('models', model);
    if (new Set(list).size !== list.length) throw invalidOption('models', 'without repeats in a list', list);
  }
  return map;
}

/** Which model comes after a failure. State of one call; decides and never acts. */
export class FallbackChain {
  readonly #map: FallbackMap;
  readonly #rules: FallbackRules;
  #waiting: readonly string[] = [];
  #moved = false;

  constructor(map: FallbackMap, rules: FallbackRules) {
    this.#map = map;
    this.#rules = rules;
  }

  /** Whether there is a model to ask after such a failure. */
  leads(code: ErrorCode): boolean {
    return this.#candidates(code).some(this.#rules.mayAsk);
  }

  /** The model to ask next, if there is one. `onPassedOver` hears of those before it that may not be asked. */
  next(code: ErrorCode, onPassedOver: (model: string) => void): string | undefined {
    const candidates = this.#candidates(code);
    const at = candidates.findIndex(this.#rules.mayAsk);
    candidates.slice(0, at < 0 ? undefined : at).forEach(onPassedOver);
    if (at < 0) return undefined;
    this.#waiting = candidates.slice(at + 1);
    this.#moved = true;
    return candidates[at];
  }

  /** Those that the code names come before those of an earlier failure. An empty list leads nowhere. */
  #candidates(code: ErrorCode): readonly string[] {
    if (CALL_IS_OVER.has(code) || this.#rules.except?.includes(code)) return [];
    const named = this.#map[code];
    if (named) return named.length === 0 ? [] : [...named, ...this.#waiting];
    return this.#leadsByDefault(code) ? [...this.#waiting, ...(this.#map.default ?? [])] : [];
  }

  #leadsByDefault(code: ErrorCode): boolean {
    const { onlyOn } = this.#rules;
    if (onlyOn) return onlyOn.includes(code);
    // What one fallback finds wrong with the request may be how it was adapted for that one.
    return !NOT_BY_DEFAULT.has(code) || (this.#moved && code === 'bad_request');
  }
}

function isList(models: readonly string[] | FallbackMap): models is readonly string[] {
  return Array.isArray(models);
}

import { nonEmpty, oneOf, positive, positiveOrInfinity, wholeNumber, zeroOrMore } from '../../core/checks.ts';
import { invalidOption } from '../../core/errors.ts';
import { checkAnswerSettings } from './answerSettings.ts';
import type { AnswerSettings } from './answerSettings.ts';
import { checkFaults } from './checkFaults.ts';
import { DIALECTS } from './dialects/dialects.ts';
import type { Dialect } from './dialects/Dialect.ts';
import type { FaultRule, Outage, RandomFault } from './faults.ts';
import { checkQuotaSettings } from './ProviderQuota.ts';
import type { QuotaSettings } from './ProviderQuota.ts';

/** One model of the provider. Its quota is a layer of its own, beside the account's. */
export interface ModelSettings extends AnswerSettings, QuotaSettings {
  /** Most requests at once. Default: no bound. */
  readonly maxConcurrent?: number | undefined;
  /** Prompt and output limit together; more is refused as `context_too_long`. Default: no bound. */
  readonly contextTokens?: number | undefined;
  /** Whether a last message of the assistant is gone on from (`true`) or refused. Default: true. */
  readonly acceptsPrefix?: boolean | undefined;
  /** Output that is reserved where a request names no limit. Default: 256. */
  readonly reservedOutputTokens?: number | undefined;
}

export interface ProviderOptions extends ModelSettings {
  /** The models there are, with settings of their own. Default: every name is a model. */
  readonly models?: Readonly<Record<string, ModelSettings>> | undefined;
  /** Headers and error bodies. Default: `'openai'`. */
  readonly dialect?: string | Dialect | undefined;
  /** Names the texts and draws the random numbers. Default: 1. */
  readonly seed?: number | undefined;
  /** Whether a refused request uses up refill, as with real providers. Default: true. */
  readonly countRejected?: boolean | undefined;
  /** What happens at the end to tokens that were reserved. Default: the dialect's. */
  readonly settle?: 'reserved' | 'usage' | undefined;
  /** Status of a refusal by `maxConcurrent`. Default: 429. */
  readonly concurrencyStatus?: 429 | 503 | undefined;
  /** Faults, used in order by the requests they match. Default: none. */
  readonly script?: readonly FaultRule[] | undefined;
  /** Faults that come by chance, to requests that no scripted fault took. Default: none. */
  readonly randomFaults?: readonly RandomFault[] | undefined;
  /** Times at which every request fails, counted from the start. Default: none. */
  readonly outages?: readonly Outage[] | undefined;
  /** `'ends'`: an undisturbed stream brings its first chunk and then the rest in one, with its end. Default: `'all'`. */
  readonly chunks?: 'all' | 'ends' | undefined;
}

export const PROVIDER_DEFAULTS = {
  headersMs: 0,
  firstTokenMs: 50,
  tokenMs: 5,
  tokens: 64,
  chunkTokens: 1,
  askedReasoningTokens: 16,
  reservedOutputTokens: 256,
  concurrencyStatus: 429,
  dialect: 'openai',
  seed: 1,
} as const;

/** @throws SluiceError `invalid_option` naming the first option that cannot be. */
export function checkProviderOptions(options: ProviderOptions): void {
  checkModel(options, '');
  for (const [name, settings] of Object.entries(options.models ?? {})) {
    nonEmpty('models: the name of a model', name);
    checkModel(settings, `models.${name}.`);
  }
  dialectOf(options.dialect);
  if (options.seed !== undefined && !Number.isSafeInteger(options.seed)) {
    throw invalidOption('seed', 'a whole number', options.seed);
  }
  if (options.settle !== undefined) oneOf('settle', options.settle, ['reserved', 'usage']);
  if (options.chunks !== undefined) oneOf('chunks', options.chunks, ['all', 'ends']);
  if (options.concurrencyStatus !== undefined)
    oneOf('concurrencyStatus', String(options.concurrencyStatus), ['429', '503']);
  checkFaults('script', options.script ?? []);
  checkFaults('randomFaults', options.randomFaults ?? []);
  checkFaults('outages', options.outages ?? []);
}

/** @throws SluiceError `invalid_option` for a name that is no dialect. */
export function dialectOf(dialect: string | Dialect = PROVIDER_DEFAULTS.dialect): Dialect {
  if (typeof dialect !== 'string') return dialect;
  const known = DIALECTS[oneOf('dialect', dialect, Object.keys(DIALECTS))];
  return known as Dialect;
}

function checkModel(settings: ModelSettings, path: string): void {
  checkAnswerSettings(settings, path);
  checkQuotaSettings(settings, path);
  if (settings.maxConcurrent !== undefined) wholeOrInfinity(`${path}maxConcurrent`, settings.maxConcurrent);
  if (settings.contextTokens !== undefined) positive(`${path}contextTokens`, settings.contextTokens);
  if (settings.reservedOutputTokens !== undefined)
    zeroOrMore(`${path}reservedOutputTokens`, settings.reservedOutputTokens);
}

function wholeOrInfinity(option: string, value: number): void {
  if (positiveOrInfinity(option, value) !== Infinity) wholeNumber(option, value);
}

import type OpenAI from 'openai';
import type { Observable } from 'rxjs';
import type { AttemptSource } from '../core/attempt.ts';
import type { CallObserver } from '../core/CallObserver.ts';
import type { SluiceError } from '../core/errors.ts';
import type { Runtime } from '../core/runtime.ts';
import type { LimitStore } from '../limits/LimitStore.ts';
import type { CostOption } from '../operators/throttleByBucket.ts';
import type { ClassifyFailure } from '../sources/AttemptOptions.ts';

/** What answers: an OpenAI client, version 6 or 7, or a transport of your own. */
export type Client = OpenAI | AttemptSource;

/** One client, which is then called `main`, or several by name. */
export type Clients = Client | Readonly<Record<string, Client>>;

/** The call that failed. The request is that of the caller. */
export interface FailedCall {
  /** `undefined` for a call that brings its own transport. */
  readonly api: 'chat' | 'responses' | undefined;
  readonly stream: boolean;
  readonly model: string;
  readonly request: Readonly<Record<string, unknown>> | undefined;
  readonly tenant: string | undefined;
  readonly conversation: string | undefined;
}

/**
 * A lesser answer in place of a failure. Text is put into the shape of the API that was asked; an Observable is taken
 * as it is; `undefined` lets the failure through.
 */
export type Degrade = (failure: SluiceError, call: FailedCall) => string | Observable<unknown> | undefined;

/** A request's cost for a model, as a number of tokens or in parts. A number is a guess, as `explicit: false` is. */
export type EstimateHook = (
  request: Readonly<Record<string, unknown>>,
  model: string,
) => number | (Exclude<CostOption, number> & { readonly inputTokens?: number });

export interface SluiceOptions {
  /** Hears and surrounds all calls; see `openTelemetry()` of `sluice/telemetry`. */
  readonly telemetry?: CallObserver | undefined;
  /** Asked first about each failure of an attempt. */
  readonly classify?: ClassifyFailure | undefined;
  /** Counts tokens in place of `estimateCost`, such as with a real tokenizer. */
  readonly estimate?: EstimateHook | undefined;
  /** Answers in place of failures, before the first value. */
  readonly degrade?: Degrade | undefined;
  /** What `sluice.fetch` sends by. Default: `globalThis.fetch`, looked up at each request. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** Hears what is probably a mistake, each kind once. Default: nobody. */
  readonly warn?: ((message: string) => void) | undefined;
  /**
   * Shares the limits of the policy with other processes: quotas, breakers, ceilings, conversations and daily spend. See
   * `redisStore` of `sluice/redis`. Default: memory, so that each process has them to itself.
   */
  readonly store?: LimitStore | undefined;
  /** Default: real time. */
  readonly runtime?: Runtime | undefined;
}

export interface CloseOptions {
  /** How long calls that run or wait may go on. Milliseconds, 0 or more, or `Infinity`. Default: 10,000. */
  readonly drainMs?: number | undefined;
}

/** Defaults of {@link CloseOptions} and {@link SluiceOptions}. */
export const SLUICE_DEFAULTS: { readonly drainMs: number } = Object.freeze({ drainMs: 10_000 });

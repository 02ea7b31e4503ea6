import type { Clock } from '../../core/runtime.ts';
import { seededRandom } from '../../core/seededRandom.ts';
import { AnswerExchange } from './AnswerExchange.ts';
import { lastTokenMs, planAnswer } from './AnswerPlan.ts';
import type { AnswerPlan } from './AnswerPlan.ts';
import { fingerprintOf } from './answerText.ts';
import { applyFault } from './applyFault.ts';
import { base36 } from './base36.ts';
import { chatBody, chatStream } from './chatAnswer.ts';
import { checkFaults } from './checkFaults.ts';
import type { Dialect, ProviderErrorFacts, ProviderErrorKind } from './dialects/Dialect.ts';
import { embeddingsBody } from './embeddingsAnswer.ts';
import type { Exchange } from './Exchange.ts';
import type { DrawnFault, Fault, FaultRule } from './faults.ts';
import { FaultScript } from './FaultScript.ts';
import { ProviderLimits } from './ProviderLimits.ts';
import type { ProviderModel } from './ProviderLimits.ts';
import { checkQuotaSettings } from './ProviderQuota.ts';
import type { QuotaSettings } from './ProviderQuota.ts';
import { isRequestFault, readRequest } from './request.ts';
import type { ProviderRequest, RequestFacts } from './request.ts';
import { responsesBody, responsesStream } from './responsesAnswer.ts';
import { checkProviderOptions, dialectOf, PROVIDER_DEFAULTS } from './settings.ts';
import type { ProviderOptions } from './settings.ts';
import type { ProviderStep, Steps } from './steps.ts';
import { wholeBody } from './steps.ts';

export interface QuotaChange {
  /** Limits of the account. */
  readonly account?: QuotaSettings | undefined;
  readonly models?: Readonly<Record<string, QuotaSettings>> | undefined;
}

type Headers = Readonly<Record<string, string>>;
type Refusal = Partial<ProviderErrorFacts> & { readonly kind: ProviderErrorKind };

const JSON_TYPE = { 'content-type': 'application/json' };
const STREAM_TYPE = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' };
const NO_FAULTS: readonly Fault[] = [];
const NO_FACTS = { retryAfterMs: undefined, limit: undefined, used: undefined, requested: undefined };

/**
 * A provider without a network: what it admits, refuses and answers, and when. It has no timers; whoever runs it plays
 * the steps, in real or in virtual time. The same options, clock readings and requests give the same steps.
 *
 * Order of judgement: an unreadable request, an outage, an unknown model, a prefix or context that the model refuses,
 * the quota of account and model, the concurrency limits. Only what all of these let pass uses up the script.
 */
export class FakeProvider {
  readonly #options: ProviderOptions;
  readonly #dialect: Dialect;
  readonly #seed: number;
  readonly #seedText: string;
  readonly #clock: Clock;
  readonly #startMs: number;
  readonly #limits: ProviderLimits;
  readonly #faults: FaultScript;
  readonly #random: () => number;
  #ordinal = 0;
  #served = 0;

  /** @throws SluiceError `invalid_option` */
  constructor(options: ProviderOptions, clock: Clock) {
    checkProviderOptions(options);
    const { seed = PROVIDER_DEFAULTS.seed, script = [], randomFaults = [], outages = [] } = options;
    this.#options = options;
    this.#dialect = dialectOf(options.dialect);
    this.#seed = seed;
    this.#seedText = seed.toString(36);
    this.#clock = clock;
    this.#startMs = clock.now();
    this.#limits = new ProviderLimits(options, this.#startMs);
    this.#faults = new FaultScript({ script, randomFaults, outages, seed: seed + 1 });
    this.#random = seededRandom(seed);
  }

  /** Names of the models that have settings, or were asked for. */
  get modelNames(): readonly string[] {
    return this.#limits.modelNames;
  }

  /** Requests that run now. */
  get running(): number {
    return this.#limits.running;
  }

  /** Faults of the script that no request has used yet. */
  get scriptLeft(): number {
    return this.#faults.left;
  }

  /**
   * Takes the place of what is left of the script.
   * @throws SluiceError `invalid_option`
   */
  script(faults: readonly FaultRule[]): void {
    checkFaults('script', faults);
    this.#faults.replace(faults);
  }

  /**
   * Changes the limits that are named, from now on. Levels stay, up to the new bursts.
   * @throws SluiceError `invalid_option`
   */
  setQuota({ account, models = {} }: QuotaChange): void {
    if (account) checkQuotaSettings(account, 'account.');
    for (const [name, settings] of Object.entries(models)) checkQuotaSettings(settings, `models.${name}.`);
    this.#limits.change(account, models, this.#clock.now());
  }

  /** Judges a request that arrives now. */
  handle(request: ProviderRequest): Exchange {
    const ordinal = ++this.#ordinal;
    const read = readRequest(request);
    if (isRequestFault(read)) return this.#refuse(ordinal, undefined, undefined, { kind: 'bad_request', ...read });
    const nowMs = this.#clock.now();
    const model = this.#limits.model(read.model, nowMs);
    const outage = this.#faults.outage(read, nowMs - this.#startMs);
    if (outage !== undefined) return this.#exchange(ordinal, read, model, 'outage', outage, 0);
    if (model === undefined) return this.#refuse(ordinal, read, undefined, { kind: 'model_not_found' });
    if (read.prefix !== undefined && model.settings.acceptsPrefix === false) {
      return this.#refuse(ordinal, read, model, { kind: 'prefix_refused' });
    }
    const { contextTokens = Infinity, reservedOutputTokens = PROVIDER_DEFAULTS.reservedOutputTokens } = model.settings;
    const wanted = read.promptTokens + (read.outputLimit ?? 0);
    if (wanted > contextTokens) {
      return this.#refuse(ordinal, read, model, { kind: 'context_too_long', limit: contextTokens, requested: wanted });
    }
    const output = request.api === 'embeddings' ? 0 : (read.outputLimit ?? reservedOutputTokens) * read.choices;
    return this.#admit(ordinal, read, model, read.promptTokens + output, nowMs);
  }

  #admit(ordinal: number, facts: RequestFacts, model: ProviderModel, reserved: number, nowMs: number): Exchange {
    const verdict = this.#limits.check(model, reserved, nowMs);
    if (verdict.kind === 'refused') {
      const { by: kind, limit, used, requested } = verdict;
      this.#countRefused(model, nowMs);
      // Read again: counting the refusal has moved the instant at which the request would pass.
      const after = this.#limits.check(model, reserved, nowMs);
      const waitMs = after.kind === 'refused' ? after.retryAfterMs : 0;
      const retryAfterMs = Number.isFinite(waitMs) ? waitMs : undefined;
      return this.#refusal(ordinal, facts, model, { kind, retryAfterMs, limit, used, requested });
    }
    if (!this.#limits.hasSlot(model)) return this.#refuse(ordinal, facts, model, { kind: 'concurrency' });
    this.#limits.start(model, reserved, nowMs);
    this.#served++;
    return this.#exchange(ordinal, facts, model, 'admitted', this.#faults.draw(facts), reserved);
  }

  #exchange(
    ordinal: number,
    facts: RequestFacts,
    model: ProviderModel | undefined,
    verdict: 'admitted' | 'outage',
    fault: DrawnFault | undefined,
    reserved: number,
  ): Exchange {
    const requestId = requestIdOf(ordinal);
    const headers = this.#headers(requestId, model);
    const streamHeaders = { ...STREAM_TYPE, ...headers };
    const faults = fault === undefined ? NO_FAULTS : [fault, ...(fault.also ?? [])];
    const answer = this.#answer(ordinal, facts, model, fault, faults);
    let steps = this.#answerSteps(facts, answer, headers, streamHeaders);
    for (const one of faults) {
      steps = applyFault(one, steps, {
        api: facts.request.api,
        model: facts.model,
        headers,
        streamHeaders,
        firstTokenMs: answer.firstTokenMs,
        errorReply: (kind, retryAfterMs, atMs, status) =>
          this.#errorSteps({ ...NO_FACTS, kind, model: facts.model, retryAfterMs }, headers, atMs, status),
      });
    }
    const settled = (this.#options.settle ?? this.#dialect.settle) === 'usage';
    const release = (used: number): void =>
      this.#limits.end(model as ProviderModel, reserved, settled ? used : reserved, this.#clock.now());
    return new AnswerExchange(
      requestId,
      verdict,
      { ordinal, facts, reserved },
      fault,
      answer,
      steps,
      verdict === 'admitted' && model !== undefined ? release : undefined,
    );
  }

  #answer(
    ordinal: number,
    facts: RequestFacts,
    model: ProviderModel | undefined,
    fault: DrawnFault | undefined,
    faults: readonly Fault[],
  ): AnswerPlan {
    const settings = model?.settings ?? this.#options;
    const changed = fault && { ...settings, ...fault.answer, ...faults.find((one) => one.kind === 'slow') };
    return planAnswer(facts, {
      settings: changed ?? settings,
      seed: this.#seed,
      random: this.#random,
      // A fault counts chunks, so it needs each of them.
      chunks: fault === undefined ? (this.#options.chunks ?? 'all') : 'all',
      unique: `${this.#seedText}-${base36(ordinal)}`,
      fingerprint: model?.fingerprint ?? fingerprintOf(facts.model, this.#seed),
      wallMs: this.#clock.wallNow(),
      finish: faults.find((one) => one.kind === 'finish'),
    });
  }

  #answerSteps(facts: RequestFacts, answer: AnswerPlan, headers: Headers, streamHeaders: Headers): Steps {
    const { api } = facts.request;
    const chat = api === 'chat';
    if (facts.stream) return chat ? chatStream(answer, streamHeaders) : responsesStream(answer, streamHeaders);
    const embeds = api === 'embeddings';
    const body = embeds ? embeddingsBody(facts, this.#seed) : chat ? chatBody(answer) : responsesBody(answer);
    const atMs = embeds ? answer.firstTokenMs : lastTokenMs(answer);
    return wholeBody(atMs, 200, { ...JSON_TYPE, ...headers }, JSON.stringify(body));
  }

  #countRefused(model: ProviderModel | undefined, nowMs: number): void {
    if (this.#options.countRejected !== false) this.#limits.countRefused(model, nowMs);
  }

  #refuse(ordinal: number, facts: RequestFacts | undefined, model: ProviderModel | undefined, why: Refusal): Exchange {
    if (model !== undefined) this.#countRefused(model, this.#clock.now());
    return this.#refusal(ordinal, facts, model, why);
  }

  #refusal(ordinal: number, facts: RequestFacts | undefined, model: ProviderModel | undefined, why: Refusal): Exchange {
    const requestId = requestIdOf(ordinal);
    const status = why.kind === 'concurrency' ? this.#options.concurrencyStatus : undefined;
    const error = { ...NO_FACTS, model: facts?.model ?? '', ...why };
    return {
      ordinal,
      requestId,
      model: facts?.model,
      conversation: facts?.conversation,
      stream: facts?.stream ?? false,
      promptTokens: facts?.promptTokens ?? 0,
      reservedTokens: 0,
      verdict: 'refused',
      refusal: why.kind,
      fault: undefined,
      steps: this.#errorSteps(error, this.#headers(requestId, model), 0, status).values(),
      sentTokens: () => 0,
      end: () => {},
    };
  }

  #errorSteps(
    facts: ProviderErrorFacts,
    headers: Headers,
    atMs: number,
    status: number | undefined,
  ): readonly ProviderStep[] {
    const reply = this.#dialect.error(facts);
    const all = { ...JSON_TYPE, ...headers, ...reply.headers };
    return wholeBody(atMs, status ?? reply.status, all, JSON.stringify(reply.body));
  }

  #headers(requestId: string, model: ProviderModel | undefined): Headers {
    const nowMs = this.#clock.now();
    const requests = this.#limits.requests(model, nowMs);
    const tokens = this.#limits.tokens(model, nowMs);
    return this.#dialect.headers({ requestId, requests, tokens, served: this.#served, wallMs: this.#clock.wallNow() });
  }
}

function requestIdOf(ordinal: number): string {
  return `req_${base36(ordinal).padStart(8, '0')}`;
}

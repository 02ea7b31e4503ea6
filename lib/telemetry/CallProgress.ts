import type { Attributes } from '@opentelemetry/api';
import type { SluiceEvent } from '../core/events.ts';
import type { Usage } from '../core/hints.ts';
import { SPAN_ATTRIBUTES as NAMES } from './spanNames.ts';

type Ended = Extract<SluiceEvent, { readonly type: 'attempt.ended' }>;

/** What the attempts of a call came to so far. */
export class CallProgress {
  #firstContentAtMs: number | undefined;
  /** The attempt that ended last, and whether it had begun to answer. */
  #last: Ended | undefined;
  #lastCommitted = false;
  #tokens = 0;
  #estimated = false;

  attemptStarted(): void {
    this.#lastCommitted = false;
  }

  committed(atMs: number): void {
    this.#lastCommitted = true;
    this.#firstContentAtMs ??= atMs;
  }

  attemptEnded(event: Ended): void {
    this.#last = event;
    this.#tokens += usageOf(event)?.totalTokens ?? 0;
    this.#estimated ||= event.estimatedUsage !== undefined;
  }

  /** Where a call that was sent, and has no request under way that failed, was left. */
  get stage(): 'entry' | 'first_content' | 'streaming' | 'backoff' {
    if (this.#last === undefined) return 'entry';
    if (this.#last.outcome !== 'dropped') return 'backoff';
    return this.#lastCommitted ? 'streaming' : 'first_content';
  }

  /** What the span of the call says of its answer. `startedAtMs`: of a streamed call. */
  attributes(outcome: 'success' | 'failure' | 'cancelled', startedAtMs: number | undefined): Attributes {
    const attributes: Attributes = {};
    if (this.#firstContentAtMs !== undefined && startedAtMs !== undefined) {
      attributes[NAMES.timeToFirstChunk] = (this.#firstContentAtMs - startedAtMs) / 1000;
    }
    const last = this.#last;
    if (last === undefined) return attributes;
    const delivered = outcome === 'failure' ? undefined : usageOf(last);
    if (delivered !== undefined) usageAttributes(attributes, delivered);
    const wasted = this.#tokens - (delivered?.totalTokens ?? 0);
    if (wasted > 0) attributes[NAMES.wastedTokens] = wasted;
    if (this.#estimated) attributes[NAMES.usageEstimated] = true;
    const { responseId, responseModel, serviceTier, systemFingerprint } = last;
    if (responseId !== undefined) attributes[NAMES.responseId] = responseId;
    if (responseModel !== undefined) attributes[NAMES.responseModel] = responseModel;
    if (serviceTier !== undefined) attributes[NAMES.responseServiceTier] = serviceTier;
    if (systemFingerprint !== undefined) attributes[NAMES.systemFingerprint] = systemFingerprint;
    const reasons = this.#finishReasons(last, outcome === 'success');
    if (reasons.length > 0) attributes[NAMES.responseFinishReasons] = reasons;
    return attributes;
  }

  /** By the conventions, a choice that was broken off has the reason `error`. */
  #finishReasons({ finishReasons }: Ended, whole: boolean): string[] {
    if (finishReasons.length > 0 || whole || !this.#lastCommitted) return [...finishReasons];
    return ['error'];
  }
}

function usageOf({ usage, estimatedUsage }: Ended): Usage | undefined {
  return usage ?? estimatedUsage;
}

function usageAttributes(attributes: Attributes, usage: Usage): void {
  const { inputTokens, outputTokens, cachedInputTokens, reasoningTokens } = usage;
  attributes[NAMES.inputTokens] = inputTokens;
  attributes[NAMES.outputTokens] = outputTokens;
  if (cachedInputTokens !== undefined) attributes[NAMES.cacheReadTokens] = cachedInputTokens;
  if (reasoningTokens !== undefined) attributes[NAMES.reasoningTokens] = reasoningTokens;
}

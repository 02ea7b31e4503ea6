import { expect } from 'chai';
import { eventsOf } from '../helpers/cases/runUpstream.ts';
import type { UpstreamFacts } from '../helpers/cases/runUpstream.ts';
import type { ExpectedError, UpstreamInput } from '../helpers/cases/upstreamCase.ts';

type Check = (facts: UpstreamFacts, expected: never, input: UpstreamInput) => void;

const stoppedAtMs = ({ leftAtMs }: UpstreamFacts, { abort_at_ms: atMs }: UpstreamInput): number =>
  atMs ?? leftAtMs ?? NaN;

const requestOf = ({ requests }: UpstreamFacts, model: string): Readonly<Record<string, unknown>> =>
  requests.find((request) => request.model === model)?.body ?? expect.fail(`${model} was not asked`);

const waitsOf = ({ requests }: UpstreamFacts): readonly number[] =>
  requests.slice(1).map(({ atMs }, at) => atMs - (requests[at]?.atMs ?? NaN));

/** Tokens that the quota holds for the call, and whether that is what the provider counted. */
const settled = (facts: UpstreamFacts): { readonly tokens: number; readonly estimated: boolean } => {
  const last = eventsOf(facts, 'settled').at(-1) ?? expect.fail('nothing was settled');
  const { usedTokens, reservedTokens, refundedTokens } = last;
  return { tokens: usedTokens ?? reservedTokens - refundedTokens, estimated: usedTokens === undefined };
};

const within = (value: number | undefined, low: number, high: number): void =>
  void expect(value).to.be.within(low, high);

/** What each key of `expect` means. A key that is not here fails its case: nothing is passed over. */
export const CHECKS: Readonly<Record<string, Check>> = {
  must: () => {},
  result: ({ result }, expected: string) => expect(result).to.equal(expected),
  attempts: ({ requests }, expected: number) => expect(requests).to.have.length(expected),
  attempts_max: ({ requests }, expected: number) => expect(requests.length).to.be.within(1, expected),
  http_requests: ({ requests }, expected: number) => expect(requests).to.have.length(expected),
  http_requests_max: ({ requests }, expected: number) => expect(requests.length).to.be.within(1, expected),
  attempts_on_primary: ({ requests }, expected: number, { request }) => {
    const primary = request?.['model'] ?? 'm1';
    expect(requests.filter(({ model }) => model === primary)).to.have.length(expected);
  },
  attempts_within_first_1000_ms: ({ requests }, expected: number) =>
    expect(requests.filter(({ atMs }) => atMs <= 1_000)).to.have.length(expected),
  fallback_called: (facts, expected: boolean) => expect(eventsOf(facts, 'fallback').length > 0).to.equal(expected),
  models_called: ({ requests }, expected: readonly string[]) =>
    expect(requests.map(({ model }) => model)).to.deep.equal(expected),
  served_by: (facts, expected: string) => {
    const last = eventsOf(facts, 'attempt.ended').at(-1);
    expect(last).to.include({ outcome: 'success', model: expected });
  },
  text: ({ answer }, expected: string) => expect(answer.text).to.equal(expected),
  reasoning: ({ answer }, expected: string) => expect(answer.reasoning).to.equal(expected),
  tool_calls: ({ answer }, expected: readonly Record<string, unknown>[]) =>
    expect(answer.toolCalls.map(({ id, name, arguments: args }) => ({ id, name, arguments: args }))).to.deep.equal(
      expected,
    ),
  finish_reason: ({ answer }, expected: string | null) => expect(answer.finishReason).to.equal(expected),
  error: (facts, expected: ExpectedError) => checkError(facts, expected),
  error_class_of_attempt_1: (facts, expected: string) =>
    expect(eventsOf(facts, 'attempt.ended')[0]?.code).to.equal(expected),
  error_notifications: ({ errorNotifications }, expected: number) => expect(errorNotifications).to.equal(expected),
  uncaught: ({ uncaught }, expected: number) => expect(uncaught).to.equal(expected),
  elapsed_ms_max: ({ settledAtMs }, expected: number) => within(settledAtMs, 0, expected),
  elapsed_ms_min: ({ settledAtMs }, expected: number) => expect(settledAtMs).to.be.at.least(expected),
  settled_by_ms: ({ settledAtMs }, expected: number) => within(settledAtMs, 0, expected),
  settled_between_ms: ({ settledAtMs }, [low, high]: readonly [number, number]) => within(settledAtMs, low, high),
  each_wait_ms_max: (facts, expected: number) => {
    for (const waitMs of waitsOf(facts)) within(waitMs, 0, expected);
  },
  each_wait_ms_min: (facts, expected: number) => {
    for (const waitMs of waitsOf(facts)) expect(waitMs).to.be.at.least(expected);
  },
  max_timer_ms: ({ longestTimerMs }, expected: number) => expect(longestTimerMs).to.be.at.most(expected),
  elapsed_after_done_ms_max: ({ settledAtMs, requests }, expected: number) =>
    within((settledAtMs ?? NaN) - (requests.at(-1)?.doneWrittenAtMs ?? NaN), 0, expected),
  upstream_cancelled: ({ requests }, expected: boolean) =>
    expect(requests.at(-1)?.abortedAtMs !== undefined).to.equal(expected),
  upstream_aborted: ({ requests }, expected: boolean) =>
    expect(requests.at(-1)?.abortedAtMs !== undefined).to.equal(expected),
  upstream_aborted_within_ms: (facts, expected: number, input) =>
    within((facts.requests.at(-1)?.abortedAtMs ?? NaN) - stoppedAtMs(facts, input), 0, expected),
  slots_in_use_after: ({ slotsInUse }, expected: number) => expect(slotsInUse).to.equal(expected),
  pending_timers_after: ({ pendingTimers }, expected: number) => expect(pendingTimers).to.equal(expected),
  tokens_taken: ({ quotaTaken }, expected: number) => expect(quotaTaken).to.equal(expected),
  abort_reason_kept: ({ error }, _expected: boolean, { abort_reason: reason }) =>
    expect(error?.cause?.message).to.equal(reason),
  role_chunks_seen_by_caller_max: ({ chunks }, expected: number) => {
    const roles = chunks.filter(({ value }) => 'choices' in value && 'delta' in (value.choices[0] ?? {}));
    const seen = roles.filter(({ value }) => JSON.stringify(value).includes('"role":"assistant"'));
    expect(seen.length).to.be.at.most(expected);
  },
  chunks_seen_from_attempt_1: ({ chunks }, expected: number) =>
    expect(chunks.filter(({ requestsBefore }) => requestsBefore === 1)).to.have.length(expected),
  caller_sees_usage_chunk: ({ chunks }, expected: boolean) => {
    const reports = chunks.filter(({ value }) => 'choices' in value && value.choices.length === 0);
    expect(reports.length > 0).to.equal(expected);
  },
  request_sent_includes: ({ requests }, expected: Record<string, unknown>) =>
    expect(requests[0]?.body).to.deep.include(expected),
  second_request_has_stream_options: ({ requests }, expected: boolean) =>
    expect('stream_options' in (requests[1]?.body ?? expect.fail('no second request'))).to.equal(expected),
  settled_tokens: (facts, expected: number) =>
    expect(settled(facts)).to.deep.equal({ tokens: expected, estimated: false }),
  settled_tokens_min: (facts, expected: number) => expect(settled(facts).tokens).to.be.at.least(expected),
  usage_estimated: (facts, expected: boolean) => expect(settled(facts).estimated).to.equal(expected),
  includes_prompt_estimate: (facts, _expected: boolean, { estimate }) =>
    expect(settled(facts).tokens).to.be.at.least(estimate?.prompt ?? NaN),
  m2_request: (facts, expected: Record<string, unknown>) => expect(requestOf(facts, 'm2')).to.deep.include(expected),
  m2_request_lacks: (facts, expected: readonly string[]) =>
    expect(requestOf(facts, 'm2')).to.not.have.any.keys(...expected),
  caller_request_unchanged: ({ callerRequestUnchanged }, expected: boolean) =>
    expect(callerRequestUnchanged).to.equal(expected),
  breaker_failures: ({ breakerFailures }, expected: number) => expect(breakerFailures('m1')).to.equal(expected),
  breaker_m2_failures: ({ breakerFailures }, expected: number) => expect(breakerFailures('m2')).to.equal(expected),
  cancel_calls: ({ cancels }, expected: number) => expect(cancels).to.equal(expected),
  retry_count_header: ({ requests }) => {
    for (const { headers } of requests) expect(headers['x-stainless-retry-count'] ?? '0').to.equal('0');
  },
  // Runs of their own, see the spec.
  also_retryable: () => {},
  also_not_retryable: () => {},
  attempts_default: ({ requests }, expected: number) => expect(requests).to.have.length(expected),
  attempts_with_custom_classifier: () => {},
};

function checkError({ error, result }: UpstreamFacts, expected: ExpectedError): void {
  if (error === undefined) expect.fail(`the call ended with ${result}, not with an error`);
  const stage = expected.while === 'queued' ? 'queue' : expected.while;
  const checks: Record<keyof ExpectedError, () => void> = {
    class: () => expect(error.code).to.equal(expected.class),
    status: () => expect(error.status).to.equal(expected.status),
    status_not: () => expect(error.status).to.not.equal(expected.status_not),
    retry_after_ms: () => expect(error.retryAfterMs).to.equal(expected.retry_after_ms),
    limit: () => expect(error.limit).to.equal(expected.limit),
    requested: () => expect(error.requested).to.equal(expected.requested),
    content_type: () => expect(error.contentType).to.equal(expected.content_type),
    body_excerpt_max: () => expect(error.message.length).to.be.within(1, 100 + (expected.body_excerpt_max ?? 0)),
    partial: () => expect(error.partial !== undefined && !error.partial.empty).to.equal(expected.partial),
    message_includes: () => expect(error.message).to.include(expected.message_includes),
    message_excludes: () => expect(error.message).to.not.include(expected.message_excludes),
    attempts: () => {
      expect(error.attempts).to.have.length(expected.attempts?.length ?? NaN);
      expected.attempts?.forEach((fields, at) => expect(error.attempts[at]).to.include(fields));
    },
    name: () => expect(error.cause?.name).to.equal(expected.name),
    while: () => expect(error.while).to.equal(stage),
  };
  for (const key of Object.keys(expected)) checks[key as keyof ExpectedError]();
}

export function assertUpstream(facts: UpstreamFacts, expected: Record<string, unknown>, input: UpstreamInput): void {
  for (const [key, value] of Object.entries(expected)) {
    const check = CHECKS[key] ?? expect.fail(`nothing checks the key ${key}`);
    check(facts, value as never, input);
  }
}

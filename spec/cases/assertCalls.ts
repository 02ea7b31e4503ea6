import { expect } from 'chai';
import type { BreakerState } from '../../lib/core/events.ts';
import type { CallsInput } from '../helpers/cases/callsCase.ts';
import type { CallsDriver } from '../helpers/cases/CallsDriver.ts';
import type { CallFacts, CallsWorld } from '../helpers/cases/CallsWorld.ts';
import type { CallsFacts } from '../helpers/cases/runCalls.ts';
import type { UpstreamCall } from '../helpers/cases/ScriptedCalls.ts';

type Check = (facts: CallsFacts, expected: never, input: CallsInput) => void;

const worldOf = ({ world }: CallsFacts): CallsWorld => world ?? expect.fail('nothing was constructed');
const driverOf = (facts: CallsFacts): CallsDriver => worldOf(facts).driver;
const seenOf = (facts: CallsFacts): readonly UpstreamCall[] => worldOf(facts).upstream.seen;

const callOf = ({ calls }: CallsFacts, id: string): CallFacts =>
  calls.find((call) => call.id === id) ?? expect.fail(`there is no call ${id}`);

const startOf = (facts: CallsFacts, id: string): number =>
  seenOf(facts).find((call) => call.id === id)?.atMs ?? expect.fail(`${id} was not sent`);

/** When each call was sent again, the first time. */
const retriesOf = (facts: CallsFacts): readonly number[] => {
  const times = new Map<string, number[]>();
  for (const { id, atMs } of seenOf(facts)) times.set(id, [...(times.get(id) ?? []), atMs]);
  return [...times.values()].flatMap(([, again]) => (again === undefined ? [] : [again]));
};

const halfOpenFrom = ({ steps }: CallsInput): number =>
  steps.filter(({ op }) => op === 'wait_ms').reduce((sum, { ms = 0 }) => sum + ms, 0);

/** What each key of `expect` means. A key that is not here fails its case: nothing is passed over. */
const CHECKS: Readonly<Record<string, Check>> = {
  must: () => {},
  construct: ({ constructed }, expected: string) => expect(constructed).to.equal(expected),
  each_wait_ms: ({ waits }, { min, max }: { readonly min: number; readonly max: number }) => {
    for (const waitMs of waits) expect(waitMs).to.be.within(min, max);
  },
  finite: ({ waits }) => expect(waits.every(Number.isFinite) && waits.length > 0).to.equal(true),
  upstream_started: (facts, expected: readonly string[]) =>
    expect(seenOf(facts).map(({ id }) => id)).to.deep.equal(expected),
  start_order: (facts, expected: readonly string[]) =>
    expect(seenOf(facts).map(({ id }) => id)).to.deep.equal(expected),
  results: (facts, expected: readonly string[] | Readonly<Record<string, string>>) => {
    if (Array.isArray(expected)) expect(facts.calls.map(({ result }) => result)).to.deep.equal(expected);
    else for (const [id, result] of Object.entries(expected)) expect(callOf(facts, id).result).to.equal(result);
  },
  finish_order_within: (facts, expected: Readonly<Record<string, readonly string[]>>) => {
    for (const [conversation, order] of Object.entries(expected)) {
      const turns = facts.calls.filter(({ step }) => step.conversation === conversation);
      const byEnd = [...turns].sort((a, b) => (a.settledAtMs ?? Infinity) - (b.settledAtMs ?? Infinity));
      expect(byEnd.map(({ id }) => id)).to.deep.equal(order);
    }
  },
  a2_started_after: (facts, expected: string) => {
    const { settledAtMs } = callOf(facts, String(expected.split(' ')[0]));
    expect(startOf(facts, 'a2')).to.be.at.least(settledAtMs ?? Infinity);
  },
  last_call: ({ calls }, expected: string) => expect(calls.at(-1)?.result).to.equal(expected),
  big: (facts, expected: string) => byTime(callOf(facts, 'big'), expected),
  small: (facts, expected: string) => byTime(callOf(facts, 'small'), expected),
  breaker: (facts, expected: BreakerState) => expect(driverOf(facts).breakerOf('m1')).to.equal(expected),
  throttle_paused: (facts, expected: boolean) => expect(driverOf(facts).isPaused('m1')).to.equal(expected),
  http_requests: (facts, expected: number) => expect(seenOf(facts)).to.have.length(expected),
  upstream_calls: (facts, expected: number) => expect(seenOf(facts)).to.have.length(expected),
  upstream_calls_in_half_open: (facts, expected: number, input) =>
    expect(seenOf(facts).filter(({ atMs }) => atMs >= halfOpenFrom(input))).to.have.length(expected),
  rejected_circuit_open: ({ calls }, expected: number) =>
    expect(calls.filter(({ error }) => error?.code === 'circuit_open')).to.have.length(expected),
  probe_upstream_aborted: (facts, expected: boolean) => {
    const probe = seenOf(facts).find(({ id }) => callOf(facts, id).step.abort_at_ms !== undefined);
    expect(probe?.aborted).to.equal(expected);
  },
  running_calls_cancelled_by_controller: (facts, expected: number) => {
    const cancelled = seenOf(facts).filter(({ id, aborted }) => aborted && !callOf(facts, id).signal.aborted);
    expect(cancelled).to.have.length(expected);
  },
  slots_in_use_after: (facts, expected: number) => expect(driverOf(facts).slots().inFlight).to.equal(expected),
  queue_length_at_30ms: ({ queueLengths }, expected: number) => expect(queueLengths.get(30)).to.equal(expected),
  tokens_left: (facts, expected: Readonly<Record<string, number>>) => {
    for (const [model, tokens] of Object.entries(expected)) expect(levelOf(facts, model)).to.be.closeTo(tokens, 0.5);
  },
  tokens_left_after: (facts, expected: number) => expect(levelOf(facts, 'm1')).to.be.closeTo(expected, 0.5),
  second_wait_ms_max: (facts, expected: number) => {
    const [, second] = facts.calls;
    const waitedMs = startOf(facts, second?.id ?? '') - (second?.startedAtMs ?? NaN);
    expect(waitedMs).to.be.within(0, expected);
  },
  conversation_entries_after: (facts, expected: number) =>
    expect(driverOf(facts).lanes()).to.deep.equal({ conversations: expected, waiting: 0 }),
  max_parallel_in_conversation: (facts, expected: number) => {
    const turns = seenOf(facts);
    const parallel = turns.map(
      ({ atMs, id }) =>
        turns.filter((other) => other.id !== id && other.atMs < atMs && (other.endedAtMs ?? Infinity) > atMs).length +
        1,
    );
    expect(Math.max(...parallel)).to.equal(expected);
  },
  limit_after: (facts, expected: number) => expect(driverOf(facts).slots().limit).to.equal(expected),
  limit_after_range: (facts, [low, high]: readonly [number, number]) =>
    expect(driverOf(facts).slots().limit).to.be.within(low, high),
  limit_never_below: (facts, expected: number) =>
    expect(Math.min(...driverOf(facts).limits, Infinity)).to.be.at.least(expected),
  retry_time_ms_min: (facts, expected: number) => expect(Math.min(...retriesOf(facts))).to.be.at.least(expected),
  retry_times_distinct_min: (facts, expected: number) =>
    expect(new Set(retriesOf(facts)).size).to.be.at.least(expected),
  retry_spread_ms_min: (facts, expected: number) => {
    const times = retriesOf(facts);
    expect(Math.max(...times) - Math.min(...times)).to.be.at.least(expected);
  },
  m1_upstream_calls_between_ms: (facts, { from, to, max }: Readonly<Record<'from' | 'to' | 'max', number>>) => {
    const between = seenOf(facts).filter(({ model, atMs }) => model === 'm1' && atMs >= from && atMs < to);
    expect(between.length).to.be.at.most(max);
  },
  abort_listeners_after: ({ listenersAfter }, expected: number) => expect(listenersAfter).to.equal(expected),
  abort_listeners_max: ({ listenersMost }, expected: number) => expect(listenersMost).to.be.within(1, expected),
  warnings: ({ warnings }) => expect(warnings).to.not.include('MaxListenersExceededWarning'),
  unhandled_rejections: ({ found }, expected: number) => expect(found['unhandledRejections']).to.equal(expected),
  error_notifications_max: ({ found }, expected: number) =>
    expect(found['errorNotifications']).to.be.within(0, expected),
  upstream_aborted: ({ found }, expected: boolean) => expect(found['upstreamAborted']).to.equal(expected),
  rss_growth_mb_max: ({ found }, expected: number) => expect(found['rssGrowthMb']).to.be.below(expected),
  upstream_bytes_read_max: ({ found }, expected: number) => expect(found['upstreamBytes']).to.be.within(1, expected),
  buffered_chunks_max: ({ found }, expected: number) => expect(found['buffered']).to.be.within(1, expected),
  chunks_lost: ({ found }, expected: number) => expect(found['lost']).to.equal(expected),
  active_timers_after: ({ found }, expected: number) => expect(found['activeTimers']).to.equal(expected),
  exit_within_ms: ({ found }, expected: number) => {
    // The process says by its code that it left no timer; how long its end takes is also the machine's affair.
    expect(found['exitCode']).to.equal(0);
    expect(found['exitWithinMs']).to.be.within(0, 4 * expected);
  },
  exit_code: ({ found }, expected: number) => expect(found['exitCode']).to.equal(expected),
  stdout: ({ found }, expected: string) => expect(found['stdout']).to.equal(expected),
  heap_growth_mb_max: ({ found }, expected: number) => expect(found['heapGrowthMb']).to.be.below(expected),
  log: ({ found }, expected: readonly string[]) => expect(found['log']).to.deep.equal(expected),
};

function levelOf(facts: CallsFacts, model: string): number | undefined {
  return driverOf(facts).tokensLeft(model);
}

/** `"ok by 50 ms"` */
function byTime({ result, startedAtMs, settledAtMs }: CallFacts, expected: string): void {
  const [, what, ms] = /^(.*) by (\d+) ms$/.exec(expected) ?? [];
  expect(result).to.equal(what);
  expect((settledAtMs ?? NaN) - startedAtMs).to.be.within(0, Number(ms));
}

/** `A_settled_by_ms`, `A_started_by_ms`, `A_finished_by_ms` for the call A. */
function timed(key: string): Check | undefined {
  const [, id, what] = /^(\w+?)_(settled|finished|started)_by_ms$/.exec(key) ?? [];
  if (id === undefined) return undefined;
  return (facts, expected: number) => {
    const atMs = what === 'started' ? startOf(facts, id) : callOf(facts, id).settledAtMs;
    expect(atMs).to.be.within(0, expected);
  };
}

export function assertCalls(facts: CallsFacts, expected: Record<string, unknown>, input: CallsInput): void {
  for (const [key, value] of Object.entries(expected)) {
    const check = CHECKS[key] ?? timed(key) ?? expect.fail(`nothing checks the key ${key}`);
    check(facts, value as never, input);
  }
}

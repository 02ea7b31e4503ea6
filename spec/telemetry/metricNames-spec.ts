import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../.ci/entryPoints.ts';
import type { CallObserver } from '../../lib/core/CallObserver.ts';
import type { SluiceEvent } from '../../lib/core/events.ts';
import { GEN_AI_METRICS, LATEST_GEN_AI_METRICS } from '../../lib/telemetry/genAiMetricNames.ts';
import { SLUICE_METRICS } from '../../lib/telemetry/metricNames.ts';
import type { MetricShape } from '../../lib/telemetry/metricNames.ts';
import { metricObserver } from '../../lib/telemetry/metricObserver.ts';
import { observeSluice } from '../../lib/telemetry/observeSluice.ts';
import { testMetrics } from '../helpers/metricsOf.ts';

const ALL: readonly MetricShape[] = [SLUICE_METRICS, GEN_AI_METRICS, LATEST_GEN_AI_METRICS].flatMap((table) =>
  Object.values<MetricShape>(table),
);
const KIND = { counter: 'counter', upDownCounter: 'up-down counter', gauge: 'gauge', histogram: 'histogram' } as const;
const SUFFIX = { counter: '_total', upDownCounter: '', gauge: '', histogram: '_bucket' } as const;

/** The cells of each row whose first cell is a name of a metric. */
function rows(cells: number): readonly (readonly string[])[] {
  const page = readFileSync(join(root, 'docs/reference/metrics.md'), 'utf8');
  return page
    .split('\n')
    .filter((line) => /^\| `(sluice|gen_ai)\.[^,|]*` +\|/.test(line))
    .map((line) =>
      line
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.trim()),
    )
    .filter((row) => row.length === cells)
    .map((row) => row.map((cell) => cell.replaceAll('`', '')));
}

describe('names of metrics', () => {
  it('are those that dashboards and alerts know; a change here is a breaking one', () => {
    const golden = JSON.parse(readFileSync(join(root, 'spec/telemetry/names.golden.json'), 'utf8')) as {
      readonly metrics: unknown;
    };
    const shapes = ALL.map(({ name, kind, unit, attributes }) => [name, { kind, unit, attributes }] as const);
    expect(Object.fromEntries(shapes)).to.deep.equal(golden.metrics);
  });

  for (const semconv of ['v1.41', 'latest'] as const) {
    it(`are all measured, by ${semconv} with the units and no other attributes`, async () => {
      const genAi = semconv === 'latest' ? LATEST_GEN_AI_METRICS : GEN_AI_METRICS;
      const shapes = [...Object.values(SLUICE_METRICS), ...Object.values<MetricShape>(genAi)];
      const test = testMetrics();
      everything(metricObserver({ meterProvider: test.provider, semconv }));
      const capUsed = { acme: 0.5 };
      observeSluice({ snapshot: () => ({ admission: { models: {} }, spend: { capUsed } }) } as never, {
        meterProvider: test.provider,
      });
      const { metrics } = await test.collect();
      const seen = metrics.map(({ descriptor: { name, unit, description }, dataPoints }) => {
        const keys = new Set(dataPoints.flatMap(({ attributes }) => Object.keys(attributes)));
        return { name, unit, description, attributes: [...keys].sort() };
      });
      const expected = shapes.map(({ name, unit, description, attributes }) => {
        return { name, unit, description, attributes: [...attributes].sort() };
      });
      expect(seen).to.have.deep.members(expected);
    });
  }

  it('are each given to one metric', () => {
    const names = ALL.map(({ name }) => name);
    expect(names).to.deep.equal([...new Set(names)]);
  });

  it('are all in the reference, with kind, unit, attributes and meaning, and no others are', () => {
    const expected = ALL.map(({ name, kind, unit, attributes, description }) => [
      ...[name, KIND[kind], unit, attributes.join(', '), description],
    ]);
    expect(rows(5)).to.have.deep.members(expected);
  });

  it('are there as Prometheus spells them', () => {
    const expected = ALL.map(({ name, kind }) => [name, name.replaceAll('.', '_') + SUFFIX[kind]]);
    expect(rows(2).filter(([name]) => name?.includes('.') && !ATTRIBUTES.has(name))).to.have.deep.members(expected);
  });
});

/** Calls in which every attribute of every metric has a value. */
function everything({ onCall, onEvent }: CallObserver): void {
  const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2, cachedInputTokens: 1, reasoningTokens: 1 };
  const attempt = { type: 'attempt.ended', durationMs: 1, usage, responseModel: 'm-1', contentChunks: 2, contentMs: 1 };
  const facts: readonly object[] = [
    { type: 'queued', where: 'quota', position: 1 },
    { type: 'granted', where: 'quota', waitedMs: 1 },
    { type: 'attempt.started' },
    { type: 'committed', atMs: 1, firstContentMs: 1 },
    { ...attempt, outcome: 'failure', code: 'overloaded', status: 503 },
    { type: 'retry.scheduled', code: 'overloaded', waitMs: 1 },
    { type: 'breaker.changed', breaker: 'b', from: 'closed', to: 'open' },
    { type: 'limit.changed', limiter: 'l', from: 2, to: 1 },
    { type: 'cooldown', waitMs: 1, reason: 'rate_limited' },
    { type: 'fallback', from: 'm', to: 'n', code: 'overloaded' },
    { type: 'refused', code: 'queue_full' },
    { type: 'store.changed', to: 'lost', reason: 'TIMEOUT' },
    { type: 'settled', reservedTokens: 1 },
    { ...attempt, outcome: 'success', status: 200 },
  ];
  for (const end of [{ outcome: 'success' }, { outcome: 'failure', code: 'overloaded' }]) {
    onCall?.({ callId: 'c', api: 'chat', model: 'm', stream: true, atMs: 0, attributes: {} } as never);
    for (const fact of [...facts, { type: 'call.ended', attempts: 1, durationMs: 1, cost: 1, ...end }]) {
      onEvent?.({ callId: 'c', attempt: 1, model: 'm', tenant: 't', ...fact } as SluiceEvent);
    }
  }
}

const ATTRIBUTES: ReadonlySet<string> = new Set(ALL.flatMap(({ attributes }) => attributes));

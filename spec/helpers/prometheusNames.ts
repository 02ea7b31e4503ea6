import { GEN_AI_METRICS } from '../../lib/telemetry/genAiMetricNames.ts';
import { SLUICE_METRICS } from '../../lib/telemetry/metricNames.ts';
import type { MetricShape } from '../../lib/telemetry/metricNames.ts';

/** As the JavaScript exporter for Prometheus spells a name or an attribute. */
const spelt = (name: string): string => name.replaceAll('.', '_');

const SUFFIXES: Readonly<Record<MetricShape['kind'], readonly string[]>> = {
  counter: ['_total'],
  upDownCounter: [''],
  gauge: [''],
  histogram: ['_bucket', '_sum', '_count'],
};

/** Every series that this library exports under its default names, with its labels. */
export const EXPORTED: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  [...Object.values(SLUICE_METRICS), ...Object.values(GEN_AI_METRICS)].flatMap(({ name, kind, attributes }) =>
    SUFFIXES[kind].map((suffix) => {
      const labels = [...attributes.map(spelt), ...(suffix === '_bucket' ? ['le'] : []), 'job', 'instance'];
      return [spelt(name) + suffix, new Set(labels)] as const;
    }),
  ),
);

/** A metric of an expression, with the labels that its selector names. */
export interface Selected {
  readonly metric: string;
  readonly labels: readonly string[];
}

export interface Mentioned {
  readonly selected: readonly Selected[];
  /** Labels of `by`, `without`, `on`, `ignoring` and `group_left`. */
  readonly grouped: readonly string[];
}

const CLAUSE = /\b(by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)/g;
const SELECTOR = /([a-zA-Z_:][\w:]*)\s*(\{[^}]*\})?(?!\s*[\w(:])/g;
const WORDS: ReadonlySet<string> = new Set(['and', 'or', 'unless', 'bool', 'offset']);

/** The names in an expression of PromQL, as far as this project writes it: no braces within strings. */
export function mentionedIn(expression: string): Mentioned {
  const grouped = [...expression.matchAll(CLAUSE)].flatMap(([, , list = '']) =>
    list.split(',').map((label) => label.trim()),
  );
  // Durations and variables are no names: [5m], [$__range].
  const rest = expression.replaceAll(CLAUSE, ' ').replaceAll(/\[[^\]]*\]/g, '');
  const selected = [...rest.matchAll(SELECTOR)]
    .filter(([, name = '']) => !WORDS.has(name))
    .map(([, metric = '', braces = '']) => ({
      metric,
      labels: [...braces.replaceAll(/"[^"]*"/g, '').matchAll(/\w+/g)].map(([label]) => label),
    }));
  return { selected, grouped: grouped.filter((label) => label !== '') };
}

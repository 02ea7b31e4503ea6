import { problemOf } from '../../policy/PolicyProblem.ts';
import type { PolicyProblem } from '../../policy/PolicyProblem.ts';
import { schemaProblems } from '../../policy/schemaProblems.ts';
import type { Load, Scenario, TraceCall } from './Scenario.ts';
import { traceCall } from './scenarioSchema.ts';

type Fields = Readonly<Record<string, unknown>>;

/** The recorded calls of a scenario, by the position of their load. */
export type Traces = ReadonlyMap<number, readonly unknown[]>;

/** In place of the calls, for what looks at the rest of a scenario. */
const STAND_IN: readonly TraceCall[] = [{ atMs: 0 }];
const MOST_TOLD = 20;

export function withoutTraces(value: unknown): { readonly rest: unknown; readonly traces: Traces } {
  const traces = new Map<number, readonly unknown[]>();
  if (!isFields(value) || !Array.isArray(value['load'])) return { rest: value, traces };
  const load = (value['load'] as unknown[]).map((one, i) => {
    const arrivals = isFields(one) ? one['arrivals'] : undefined;
    if (!isFields(one) || !isFields(arrivals) || arrivals['kind'] !== 'trace') return one;
    const { calls } = arrivals;
    if (!Array.isArray(calls) || calls.length === 0) return one;
    traces.set(i, calls as unknown[]);
    return { ...one, arrivals: { ...arrivals, calls: STAND_IN } };
  });
  return { rest: { ...value, load }, traces };
}

export function traceProblems(traces: Traces): PolicyProblem[] {
  const found: PolicyProblem[] = [];
  for (const [load, calls] of traces) {
    for (let i = 0; i < calls.length && found.length < MOST_TOLD; i++) {
      if (traceCall.safeParse(calls[i]).success) continue;
      const { problems } = schemaProblems(traceCall, calls[i], calls[i]);
      const at = ['load', load, 'arrivals', 'calls', i];
      found.push(
        ...problems.map(({ path, expected, got, suggestion }) =>
          problemOf([...at, ...path], expected, got, { suggestion }),
        ),
      );
    }
  }
  return found;
}

/** The scenario with its calls in their places again. */
export function withTraces(scenario: Scenario, traces: Traces): Scenario {
  if (traces.size === 0) return scenario;
  const load = scenario.load.map((one, i): Load => {
    const calls = traces.get(i);
    return calls === undefined ? one : { ...one, arrivals: { kind: 'trace', calls: calls as readonly TraceCall[] } };
  });
  return { ...scenario, load };
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

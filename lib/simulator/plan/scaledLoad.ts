import type { Arrivals, Load, TraceCall } from '../scenario/Scenario.ts';

/** `times` as many calls in the same time. Recorded calls are made again, or left out, evenly. */
export function scaledLoad(load: readonly Load[], times: number): readonly Load[] {
  return load.map((one) => ({ ...one, arrivals: scaled(one.arrivals, times) }));
}

function scaled(arrivals: Arrivals, times: number): Arrivals {
  switch (arrivals.kind) {
    case 'constant':
    case 'poisson':
    case 'daily':
      return { ...arrivals, perMinute: arrivals.perMinute * times };
    case 'bursts':
      return { ...arrivals, size: Math.max(1, Math.round(arrivals.size * times)) };
    case 'workers': {
      const { workers, calls } = arrivals;
      const many = (value: number): number => Math.max(1, Math.round(value * times));
      return { ...arrivals, workers: many(workers), ...(calls !== undefined && { calls: many(calls) }) };
    }
    case 'trace':
      return { ...arrivals, calls: arrivals.calls.flatMap((call, i) => repeated(call, i, times)) };
  }
}

function repeated(call: TraceCall, i: number, times: number): TraceCall[] {
  return Array.from({ length: Math.floor((i + 1) * times) - Math.floor(i * times) }, () => call);
}

/** The load with `share` of the calls of one model asked of another. */
export function sharedLoad(load: readonly Load[], model: string, cheaper: string, share: number): readonly Load[] {
  // What is split off comes last: the others draw what they drew before.
  const split: Load[] = [];
  const kept = load.flatMap((one): Load[] => {
    if (one.arrivals.kind === 'trace') return [{ ...one, arrivals: sharedTrace(one, model, cheaper, share) }];
    if (one.model !== model || share === 0) return [one];
    const [rest, part] = divided(one.arrivals, share);
    if (part === undefined) return [one];
    if (rest === undefined) return [{ ...one, model: cheaper }];
    split.push({ ...one, model: cheaper, arrivals: part });
    return [{ ...one, arrivals: rest }];
  });
  return [...kept, ...split];
}

/** What is left, and what was split off; what is counted adds up. */
function divided(arrivals: Arrivals, share: number): readonly [rest: Arrivals | undefined, part: Arrivals | undefined] {
  switch (arrivals.kind) {
    case 'bursts': {
      const size = Math.round(arrivals.size * share);
      return [counted(arrivals, 'size', arrivals.size - size), counted(arrivals, 'size', size)];
    }
    case 'workers': {
      const { workers, calls } = arrivals;
      const many = Math.round(workers * share);
      const made = calls === undefined ? undefined : Math.round((calls * many) / workers);
      const of = (count: number, total: number | undefined): Arrivals | undefined =>
        counted({ ...arrivals, ...(total !== undefined && { calls: Math.max(1, total) }) }, 'workers', count);
      return [of(workers - many, made === undefined ? undefined : (calls ?? 0) - made), of(many, made)];
    }
    default:
      return [share === 1 ? undefined : scaled(arrivals, 1 - share), scaled(arrivals, share)];
  }
}

function counted<K extends string, A extends Arrivals & Readonly<Record<K, number>>>(
  arrivals: A,
  name: K,
  count: number,
): A | undefined {
  return count === 0 ? undefined : { ...arrivals, [name]: count };
}

function sharedTrace({ arrivals, model: standard }: Load, model: string, cheaper: string, share: number): Arrivals {
  if (arrivals.kind !== 'trace') return arrivals;
  let seen = 0;
  const calls = arrivals.calls.map((call): TraceCall => {
    if ((call.model ?? standard) !== model) return call;
    seen++;
    return Math.floor(seen * share) > Math.floor((seen - 1) * share) ? { ...call, model: cheaper } : call;
  });
  return { ...arrivals, calls };
}

import { seededRandom } from '../../core/seededRandom.ts';
import type { DrawnFault, FaultMatch, FaultRule, Outage, RandomFault } from './faults.ts';
import type { RequestFacts } from './request.ts';

interface Entry {
  readonly rule: FaultRule;
  left: number;
}

export interface FaultScriptOptions {
  readonly script: readonly FaultRule[];
  readonly randomFaults: readonly RandomFault[];
  readonly outages: readonly Outage[];
  readonly seed: number;
}

/** Which fault a request gets: an outage, else the first of the script that matches and is not used up, else chance. */
export class FaultScript {
  #entries: Entry[] = [];
  readonly #randomFaults: readonly RandomFault[];
  readonly #outages: readonly Outage[];
  readonly #random: () => number;

  constructor({ script, randomFaults, outages, seed }: FaultScriptOptions) {
    this.replace(script);
    this.#randomFaults = randomFaults;
    this.#outages = outages;
    this.#random = seededRandom(seed);
  }

  /** Forgets what is left of the script. */
  replace(script: readonly FaultRule[]): void {
    this.#entries = script.map((rule) => ({ rule, left: rule.times === 'always' ? Infinity : (rule.times ?? 1) }));
  }

  /** Faults of the script that no request has used yet; `Infinity` where one is for always. */
  get left(): number {
    return this.#entries.reduce((sum, { left }) => sum + left, 0);
  }

  outage(facts: RequestFacts, sinceStartMs: number): DrawnFault | undefined {
    return this.#outages.find(
      (outage) => sinceStartMs >= outage.fromMs && sinceStartMs < outage.toMs && matches(outage, facts),
    );
  }

  draw(facts: RequestFacts): DrawnFault | undefined {
    const entry = this.#entries.find(({ rule }) => matches(rule, facts));
    if (entry !== undefined) {
      entry.left--;
      if (entry.left === 0) this.#entries.splice(this.#entries.indexOf(entry), 1);
      return entry.rule;
    }
    // One draw for each, matched or not: a fault of one model does not move the chances of another.
    let drawn: DrawnFault | undefined;
    for (const fault of this.#randomFaults) {
      const strikes = this.#random() < fault.probability;
      if (strikes && drawn === undefined && matches(fault, facts)) drawn = fault;
    }
    return drawn;
  }
}

function matches(match: FaultMatch & { readonly kind: string }, facts: RequestFacts): boolean {
  const { request } = facts;
  if (match.model !== undefined && match.model !== facts.model) return false;
  if (match.api !== undefined && match.api !== request.api) return false;
  if (match.conversation !== undefined && match.conversation !== facts.conversation) return false;
  if (match.stream !== undefined && match.stream !== facts.stream) return false;
  if (match.kind === 'refuse_prefix' && facts.prefix === undefined) return false;
  for (const [name, value] of Object.entries(match.requestHeaders ?? {})) {
    if (request.headers?.[name.toLowerCase()] !== value) return false;
  }
  return match.when?.(facts) ?? true;
}

import type { SimulationResult, StrategyResult } from '../../../lib/simulator/index.ts';
import type { Claim } from './fieldNotes.ts';
import { duration, percent } from './fieldNotes.ts';

/** One report from production as a scenario: its file, what was measured there, and what must hold here. */
export interface FieldNote {
  readonly file: string;
  readonly marks: (result: SimulationResult) => readonly Claim[];
  /** How the spec makes it small: a part of the rates, a part of the times, the first milliseconds. */
  readonly small: { readonly rate?: number; readonly time?: number; readonly forMs?: number };
}

/** A figure of a report is met where ours lies within a third of it. */
const BAND = 1 / 3;
const SAME = 1.05;

export const FIELD_NOTES: readonly FieldNote[] = [
  {
    file: 'field-note-a',
    small: { forMs: 12_000 },
    marks: ({ best, strategies }) => {
      const [before, after, sluice] = named(strategies, 'before', 'after', 'sluice');
      return [
        near('before: 429s per request', before.rateLimitedShare, 0.173, percent),
        atMost('after: 429s per request', after.rateLimitedShare, 0.004, percent),
        near('after: first content, p95', after.firstContentMs.p95, 430, duration),
        ...ours(sluice, best, 0.0003),
        beats('429s per request', sluice.rateLimitedShare, after.rateLimitedShare),
      ];
    },
  },
  {
    file: 'field-note-b',
    small: { rate: 1 / 100, time: 1 / 20 },
    marks: ({ strategies }) => {
      const [before, after, eight, sluice] = named(strategies, 'before', 'after', 'the same at 8', 'sluice');
      const limited = (result: StrategyResult): number => result.phases[0]?.attemptsPerCall ?? Number.NaN;
      return [
        near('before: attempts per call while limited', limited(before), 4.3, times),
        atLeast('before: errors went on for', before.errorWindowMs, 660_000, duration),
        near('after: attempts per call while limited', limited(after), 1.2, times),
        atMost('after: errors went on for', after.errorWindowMs, 90_000, duration),
        near('breaker at 8: attempts per call while limited', limited(eight), 1.9, times),
        atMost('Sluice: attempts per call while limited', limited(sluice), 1.2, times),
        atMost('Sluice: errors went on for', sluice.errorWindowMs, 90_000, duration),
        atMost('Sluice: recovery from a 429, p95 (0 where there is none)', recovery(sluice), 1900, duration),
        whole(sluice),
      ];
    },
  },
  {
    file: 'field-note-b-recovery',
    small: { forMs: 10_000 },
    marks: ({ best, strategies }) => {
      const [before, after, sluice] = named(strategies, 'before', 'after', 'sluice');
      return [
        near('before: recovery from a 429, p95', before.recoveryMs.p95, 6400, duration),
        near('after: recovery from a 429, p95', after.recoveryMs.p95, 1900, duration),
        near('before: not answered', 1 - answered(before), 0.022, percent),
        near('after: not answered', 1 - answered(after), 0.004, percent),
        atMost('Sluice: recovery from a 429, p95 (0 where there is none)', recovery(sluice), 1900, duration),
        ...ours(sluice, best, 0.0003),
      ];
    },
  },
  {
    file: 'field-note-c',
    small: { forMs: 30_000 },
    marks: ({ best, strategies }) => {
      const [before, after, sluice, tiers] = named(strategies, 'before', 'after', 'sluice, one', 'sluice, tiers');
      return [
        near('before: 429s per request', before.rateLimitedShare, 0.072, percent),
        atMost('after: 429s per request', after.rateLimitedShare, 0.0003, percent),
        ...ours(sluice, best, 0.0003),
        atMost(
          'Sluice: 429s per request, next to the recipe',
          sluice.rateLimitedShare,
          after.rateLimitedShare,
          percent,
        ),
        ['Sluice: all turns in order', sluice.turnsInOrder === sluice.turns],
        atMost('Sluice, tiers by weight: 429s per request', tiers.rateLimitedShare, 0.0003, percent),
      ];
    },
  },
  {
    file: 'field-note-d',
    small: { time: 1 / 20 },
    marks: ({ strategies }) => {
      const [sluice] = named(strategies, 'sluice');
      return [
        ...sluice.phases.flatMap((phase) => [
          atMost(`Sluice, ${phase.name}: 429s per request`, phase.rateLimitedShare, 0.02, percent),
          atMost(`Sluice, ${phase.name}: whole answer, p95`, phase.totalMs.p95, 8000, duration),
          atMost(`Sluice, ${phase.name}: attempts per call`, phase.attemptsPerCall, 1.3, times),
        ]),
        atMost('Sluice: 429s per request, worst five minutes', sluice.worstRateLimitedShare, 0.02, percent),
        whole(sluice),
      ];
    },
  },
  {
    file: 'field-note-e',
    small: { forMs: 6_000 },
    marks: ({ best, strategies }) => {
      const [before, after, sluice] = named(strategies, 'before', 'after', 'sluice');
      return [
        near('before: 429s per request', before.rateLimitedShare, 0.18, percent),
        atMost('after: 429s per request', after.rateLimitedShare, 0.003, percent),
        near('after: first content, p99', after.firstContentMs.p99, 2100, duration),
        atLeast('after: answered', answered(after), 0.997, percent),
        ...ours(sluice, best, 0.0003),
        atLeast('Sluice: answered', answered(sluice), 0.9997, percent),
      ];
    },
  },
  {
    file: 'field-note-e-workers',
    small: { forMs: 12_000 },
    marks: ({ best, strategies }) => {
      const [before, after, sluice] = named(strategies, 'before', 'after', 'sluice');
      return [
        near('before: 429s per request', before.rateLimitedShare, 0.18, percent),
        atMost('after: 429s per request', after.rateLimitedShare, 0.003, percent),
        near('after: first content, p50', after.firstContentMs.p50, 380, duration),
        near('after: first content, p99', after.firstContentMs.p99, 2100, duration),
        atLeast('after: answered', answered(after), 0.997, percent),
        ...ours(sluice, best, 0.0003),
        atLeast('Sluice: answered', answered(sluice), 0.9997, percent),
      ];
    },
  },
];

/** What is asked of Sluice beside the best possible schedule. */
function ours(sluice: StrategyResult, best: StrategyResult, most429s: number): Claim[] {
  const most = SAME * best.firstContentMs.p95;
  return [
    atMost('Sluice: 429s per request', sluice.rateLimitedShare, most429s, percent),
    atMost(
      'Sluice: first content, p95, at most 5 % above the best possible schedule',
      sluice.firstContentMs.p95,
      most,
      duration,
    ),
    whole(sluice),
  ];
}

function whole({ truncated }: StrategyResult): Claim {
  return ['Sluice: no answer is cut off', truncated === 0];
}

function beats(what: string, value: number, other: number): Claim {
  return [`Sluice: fewer ${what} than the recipe`, value < other];
}

type Shown = (value: number) => string;

function near(what: string, value: number, mark: number, shown: Shown): Claim {
  const holds = Math.abs(value - mark) <= BAND * mark;
  return [`${what}: ${shown(value)}, in the report ${shown(mark)}; the same within a third`, holds];
}

function atMost(what: string, value: number, mark: number, shown: Shown): Claim {
  return [`${what}: ${shown(value)}, at most ${shown(mark)}`, value <= mark];
}

function atLeast(what: string, value: number, mark: number, shown: Shown): Claim {
  return [`${what}: ${shown(value)}, at least ${shown(mark)}`, value >= mark];
}

function times(value: number): string {
  return value.toFixed(2);
}

function recovery({ recoveryMs }: StrategyResult): number {
  return Number.isNaN(recoveryMs.p95) ? 0 : recoveryMs.p95;
}

function answered({ answered: count, calls }: StrategyResult): number {
  return count / calls;
}

function named<const N extends readonly string[]>(
  strategies: readonly StrategyResult[],
  ...names: N
): { [K in keyof N]: StrategyResult } {
  return names.map((name) => {
    const found = strategies.find((one) => one.name.startsWith(name));
    if (found === undefined) throw new Error(`there is no strategy ${name}`);
    return found;
  }) as { [K in keyof N]: StrategyResult };
}

import type { PolicyPath } from '../../policy/PolicyProblem.ts';
import type { Scenario } from '../scenario/Scenario.ts';
import type { PlanValue } from './PlanInput.ts';

/** A number that is looked for, as it can be turned. */
export interface Knob {
  /** `requests a minute of main`. */
  readonly label: string;
  readonly search: 'smallest' | 'largest' | 'best';
  /** All that are tried; from the one that is wanted most to the one that does most, where the search is not for the best. */
  readonly values: readonly PlanValue[];
  /** Position of what the scenario has, or the middle. */
  readonly start: number;
  /** `1,160 requests a minute of main`. */
  told(value: PlanValue): string;
  apply(scenario: Scenario, value: PlanValue): Scenario;
  /** The scenario without such a limit, where there is one to take away. */
  readonly free?: ((scenario: Scenario) => Scenario) | undefined;
  /** Copies what others have set, and is turned after them. */
  readonly copies?: boolean | undefined;
  /** Where its value stands in the policy. */
  readonly places: readonly PolicyPath[];
  /** What else has to be done, of which the policy knows nothing. */
  readonly aside?: ((value: PlanValue) => string) | undefined;
}

/** The ends of what is tried, the lower one first where they are numbers. */
export function rangeOf({ search, values }: Knob): readonly [from: PlanValue, to: PlanValue] {
  const [first, last] = [values[0] as PlanValue, values.at(-1) as PlanValue];
  return search === 'largest' ? [last, first] : [first, last];
}

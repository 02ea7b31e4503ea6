import type { Cost } from '../core/ports.ts';
import type { AdmissionGrant, TargetChange } from './AdmissionGrant.ts';
import type { AdmissionTicket } from './AdmissionPool.ts';
import type { AdmissionRefusal } from './admissionRefusals.ts';
import type { WaitLimits } from './waitBound.ts';

export interface AdmissionAsk extends WaitLimits {
  readonly model: string;
  readonly cost: Cost;
  readonly tenant?: string | undefined;
  /** Default: the most urgent. */
  readonly priority?: string | undefined;
}

export type AdmissionStep =
  /** The ticket has left the queue; whoever gets the grant ends and closes it. Ask again at once. */
  | {
      readonly kind: 'granted';
      readonly ticket: AdmissionTicket;
      readonly grant: AdmissionGrant;
      readonly changes: readonly TargetChange[];
    }
  /** The ticket has left the queue. Ask again at once. */
  | {
      readonly kind: 'refused';
      readonly ticket: AdmissionTicket;
      readonly refusal: AdmissionRefusal;
      readonly changes: readonly TargetChange[];
    }
  /** Time alone has changed a breaker. Ask again at once. */
  | { readonly kind: 'changed'; readonly changes: readonly TargetChange[] }
  /** Nothing to do before that time, unless something is given back. `Infinity`: nobody waits. */
  | { readonly kind: 'wait'; readonly untilMs: number };

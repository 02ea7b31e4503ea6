import type { Policy, SluiceEvent } from '../../../lib/index.ts';
import type { PlannedCall } from '../plan/ChaosPlan.ts';

/** One call as its caller sees it. */
export interface CallTrace {
  readonly index: number;
  readonly planned: PlannedCall;
  readonly process: number;
  readonly askedMs: number;
  /** It has reached the client: at once in this process, later from outside, where it may be turned away before. */
  begun: boolean;
  /** Until then it may get its first value, by the policy that it began under. */
  deadlineAtMs: number;
  policy: Policy;
  readonly attempts: AttemptTrace[];
  /** What the caller has got since the last restart. */
  text: string;
  restarts: number;
  /** Attempts that had been sent when it last began anew. */
  startedOverAt: number;
  values: number;
  /** When it left; what still comes afterwards is wrong. */
  leftMs: number | undefined;
  endedMs: number | undefined;
  /** Of its failure; `undefined` where it was answered. */
  code: string | undefined;
  /** Nothing of it is subscribed to any more. */
  goneMs: number | undefined;
}

/** Asks from outside: what it does is heard a little later, or has other words. */
export function isOutside({ by }: PlannedCall): boolean {
  return by === 'gateway' || by === 'fetch';
}

/** One request as it leaves, and what comes back for it. */
export interface AttemptTrace {
  readonly call: CallTrace;
  readonly process: number;
  readonly client: string;
  /** As its client calls it. */
  readonly upstream: string;
  readonly model: string;
  readonly request: Readonly<Record<string, unknown>>;
  readonly sentMs: number;
  /** All content that it brought. */
  text: string;
  closedMs: number | undefined;
}

/** What happens in a run, as it happens. */
export type Fact =
  | { readonly kind: 'asked'; readonly call: CallTrace }
  | { readonly kind: 'value'; readonly call: CallTrace }
  /** The caller goes: by unsubscribing, or its signal has just been aborted. */
  | { readonly kind: 'left'; readonly call: CallTrace }
  | { readonly kind: 'ended'; readonly call: CallTrace; readonly error: unknown }
  /** Unsubscribed from, by the caller or as it had ended. */
  | { readonly kind: 'gone'; readonly call: CallTrace }
  | { readonly kind: 'sent'; readonly attempt: AttemptTrace }
  | { readonly kind: 'closed'; readonly attempt: AttemptTrace }
  /** What a provider made of a request. */
  | {
      readonly kind: 'judged';
      readonly client: string;
      readonly model: string | undefined;
      readonly refusal: string | undefined;
    }
  | { readonly kind: 'reloaded' }
  | { readonly kind: 'stored'; readonly what: string }
  | {
      readonly kind: 'told';
      readonly process: number;
      readonly call: CallTrace | undefined;
      readonly event: SluiceEvent;
    }
  | { readonly kind: 'span'; readonly what: 'started' | 'ended'; readonly span: SpanFacts };

export interface SpanFacts {
  readonly id: string;
  readonly name: string;
  readonly attributes: unknown;
}

/** What is there when everything has ended: all of it should be nothing. */
export interface Leftovers {
  /** Names of what is left, with how much of it. */
  readonly counts: Readonly<Record<string, number>>;
}

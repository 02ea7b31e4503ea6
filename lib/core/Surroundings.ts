import type { Demand } from './attempt.ts';
import type { Home } from './CallObserver.ts';
import type { CallScopeChanges, CallState } from './CallScopeChanges.ts';
import type { ContentListener } from './content.ts';
import type { RetryBudgetPort } from './ports.ts';

/** What the frames of a call have in common, but for those above one that changes it. */
export interface Surroundings {
  readonly call: CallState;
  readonly tenant: string | undefined;
  readonly conversation: string | undefined;
  readonly priority: string | undefined;
  readonly budget: RetryBudgetPort | undefined;
  readonly demand: Demand | undefined;
  readonly around: (<R>(work: () => R) => R) | undefined;
  readonly home: Home | undefined;
  readonly onContent: ContentListener | undefined;
}

/** The same object where nothing of it changes, as for most frames. */
export function surroundingsOf(before: Surroundings, changes: CallScopeChanges): Surroundings {
  const { tenant, conversation, priority, budget, demand, around, home, onContent } = changes;
  const changed = tenant ?? conversation ?? priority ?? budget ?? demand ?? around ?? home ?? onContent;
  if (changed === undefined) return before;
  const { around: outer } = before;
  return {
    call: before.call,
    tenant: tenant ?? before.tenant,
    conversation: conversation ?? before.conversation,
    priority: priority ?? before.priority,
    budget: budget ?? before.budget,
    demand: demand ?? before.demand,
    around: around && outer ? (work) => outer(() => around(work)) : (around ?? outer),
    home: home ?? before.home,
    onContent: onContent ?? before.onContent,
  };
}

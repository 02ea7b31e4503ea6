import { modelPolicy } from '../../../lib/policy/modelPolicy.ts';
import type { Invariant } from './Invariant.ts';

/** What was told to be open, until it is told to be otherwise. */
export const openBreakersSendNothing: Invariant = {
  name: 'openBreakersSendNothing',
  promise: 'while a breaker is open nothing is sent to its deployment',
  watch(stage, fail) {
    const open = new Set<string>();
    // There another process may have found it half-open, which this one is told by being let through.
    if (stage.plan.world === 'redis') return {};
    return {
      see(fact) {
        if (fact.kind === 'told' && fact.event.type === 'breaker.changed') {
          const { breaker, to } = fact.event;
          const key = `${fact.process} ${breaker}`;
          if (to === 'open') open.add(key);
          else open.delete(key);
        }
        if (fact.kind !== 'sent') return;
        const { model, client, process, call } = fact.attempt;
        const several = modelPolicy(stage.policy, model).deployments.length > 1;
        const breaker = several ? `${model}@${client}` : model;
        if (open.has(`${process} ${breaker}`)) fail(`call ${call.index} is sent to ${breaker}, whose breaker is open`);
      },
    };
  },
};

import type { Invariant } from './Invariant.ts';

/** A client at rest holds nothing and keeps nothing alive. */
export const nothingIsLeft: Invariant = {
  name: 'nothingIsLeft',
  promise: 'when all calls have ended no timer, listener, permit, place or request is left',
  watch: (_, fail) => ({
    end({ counts }) {
      for (const [what, count] of Object.entries(counts)) if (count !== 0) fail(`${what}: ${count}`);
    },
  }),
};

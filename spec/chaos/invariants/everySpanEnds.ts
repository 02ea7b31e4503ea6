import type { Invariant } from './Invariant.ts';

/** In the tracing that users have: none stays open, none ends twice. */
export const everySpanEnds: Invariant = {
  name: 'everySpanEnds',
  promise: 'every call and every attempt has a span, and each of them ends once',
  watch(stage, fail) {
    const open = new Map<string, string>();
    let attempts = 0;
    let sent = 0;
    let calls = 0;
    return {
      see(fact) {
        if (fact.kind === 'sent') sent++;
        if (fact.kind !== 'span') return;
        const { what, span } = fact;
        if (what === 'started') {
          open.set(span.id, span.name);
          if (span.name.startsWith('attempt ')) attempts++;
          else if (span.name !== 'queue') calls++;
        } else if (!open.delete(span.id)) fail(`a span of ${span.name} ended that is not open`);
      },
      end() {
        for (const name of open.values()) fail(`a span of ${name} does not end`);
        const begun = stage.calls.filter((call) => call.begun).length;
        if (calls !== begun) fail(`${begun} calls have ${calls} spans`);
        if (attempts !== sent) fail(`${sent} attempts have ${attempts} spans`);
      },
    };
  },
};

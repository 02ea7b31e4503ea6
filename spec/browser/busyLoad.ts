import type { FakeSource } from '../http/live/parts.ts';
import { eventOf } from '../http/live/parts.ts';

const MODELS = ['gpt-5.5', 'gpt-5.5-mini', 'deepseek-v3.2'];
const BEAT_MS = 20;

/** Tells of so many calls a second, some of which fail or are tried again; catches up where the process was held up. */
export async function busyLoad(
  source: FakeSource,
  { callsPerSecond, seconds }: { readonly callsPerSecond: number; readonly seconds: number },
): Promise<{ readonly calls: number; readonly attempts: number }> {
  const beganMs = performance.now();
  const wanted = callsPerSecond * seconds;
  let calls = 0;
  let attempts = 0;
  while (calls < wanted) {
    const dueMs = performance.now() - beganMs;
    const due = Math.min(wanted, Math.floor((dueMs / 1_000) * callsPerSecond));
    for (; calls < due; calls++) attempts += tellCall(source, calls);
    await new Promise((resolve) => setTimeout(resolve, BEAT_MS));
  }
  return { calls, attempts };
}

/** The events of one call that ends now. Returns its attempts. */
export function tellCall(source: FakeSource, number: number): number {
  const endMs = performance.now();
  const durationMs = 100 + ((number * 37) % 900);
  const beganMs = endMs - durationMs;
  const who = {
    callId: `call-${number}`,
    model: MODELS[number % MODELS.length] ?? '',
    tenant: `tenant-${number % 50}`,
  };
  const retried = number % 20 === 0;
  const failed = number % 100 === 0;
  source.tell(
    eventOf('queued', beganMs, who),
    eventOf('granted', beganMs + 20, { ...who, waitedMs: 20 }),
    eventOf('attempt.started', beganMs + 20, who),
  );
  if (retried) {
    source.tell(
      eventOf('attempt.ended', beganMs + 50, {
        ...who,
        ...{ outcome: 'failure', code: 'rate_limited', status: 429, durationMs: 30 },
      }),
      eventOf('granted', beganMs + 60, { ...who, attempt: 2 }),
      eventOf('attempt.started', beganMs + 60, { ...who, attempt: 2 }),
    );
  }
  const attempt = retried ? 2 : 1;
  source.tell(
    eventOf('committed', beganMs + 90, { ...who, attempt, firstContentMs: 30 }),
    eventOf('attempt.ended', endMs, { ...who, attempt, durationMs: durationMs - 60, status: 200 }),
    eventOf('settled', endMs, { ...who, attempt }),
    eventOf('call.ended', endMs, {
      ...who,
      ...{ durationMs, attempts: attempt },
      ...(failed ? { outcome: 'failure', code: 'overloaded' } : {}),
    }),
  );
  return attempt;
}

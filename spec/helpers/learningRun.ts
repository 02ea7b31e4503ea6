import { SluiceError } from '../../lib/core/errors.ts';
import { SUCCESS } from '../../lib/core/outcome.ts';
import type { LayerOptions } from '../../lib/limits/QuotaLayer.ts';
import { createAdmission } from '../../lib/operators/createAdmission.ts';
import { seededRandom } from '../../lib/testing/seededRandom.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { ProviderBucket } from './ProviderBucket.ts';
import type { Counting } from './ProviderBucket.ts';
import { hintsOf } from './hintsOf.ts';

export interface LearningRun {
  /** The provider's own numbers, and how it counts what it rejects. */
  readonly real: number;
  readonly burst: number;
  readonly counting?: Counting;
  readonly configured?: number | undefined;
  readonly headers?: boolean;
  /** The wait that a rejection names, at least. Default: none is named. */
  readonly hintMs?: number | undefined;
  /** The provider's rate from then on. */
  readonly changes?: readonly (readonly [atMs: number, perMinute: number])[];
  /** The part that another client takes. */
  readonly other?: number;
  readonly workers?: number;
  readonly seed?: number;
  /** There and back, without what an answer takes. Each varies by half of it. */
  readonly roundTripMs?: number;
  readonly answerMs?: number;
  readonly forMs?: number;
  /** The provider answers nothing in between. */
  readonly stall?: readonly [fromMs: number, toMs: number];
}

export interface LearningResult {
  readonly rejectedAtMs: readonly number[];
  rejectedShare(fromMs: number, toMs: number): number;
  rejectedIn(fromMs: number, toMs: number): number;
  answeredIn(fromMs: number, toMs: number): number;
  /** Most rejections in any span of so long. */
  mostRejectedIn(spanMs: number, fromMs: number): number;
}

/** An admission before a provider that counts exactly, in virtual time. */
export function learningRun(options: LearningRun): LearningResult {
  const { real, burst, counting = 'debt', configured, headers = false, hintMs, changes = [], other = 0 } = options;
  const { workers = 64, seed = 4, roundTripMs = 60, answerMs = 300, forMs = 70_000, stall } = options;
  const runtime = virtualRuntime({ seed });
  const random = seededRandom(seed);
  const account: LayerOptions & { maxWaitMs: number; maxWaiting: number } = {
    maxWaitMs: Infinity,
    maxWaiting: Infinity,
    ...(configured === undefined ? {} : { requestsPerMinute: configured }),
  };
  const admission = createAdmission({ maxInFlight: workers, quota: { account } }, runtime);
  const provider = new ProviderBucket(real, burst, counting);
  let limit = real;
  const answered: number[] = [];
  const rejected: number[] = [];
  const wayMs = (): number => (roundTripMs / 2) * (0.75 + 0.5 * random());
  const later = (work: () => void, ms: number): void => void runtime.scheduler.schedule(work, ms);
  const send = (): void => {
    admission.acquire({ model: 'm', cost: { requests: 1, tokens: 0, explicit: true } }).subscribe((admitted) => {
      admitted.dispatched();
      later(() => {
        const nowMs = runtime.clock.now();
        const passed = provider.arrive(nowMs);
        (passed ? answered : rejected).push(nowMs);
        const remaining = Math.max(0, Math.floor(provider.remaining(nowMs)));
        const stalledMs = stall && nowMs >= stall[0] && nowMs < stall[1] ? stall[1] - nowMs : 0;
        later(() => {
          admitted.responded(passed ? 200 : 429);
          const retryAfterMs = passed ? undefined : hintMs;
          if (headers || retryAfterMs !== undefined) {
            const retryAfterSource = retryAfterMs === undefined ? undefined : 'retry-after';
            const requests = headers ? { limit, remaining, resetMs: undefined, windowMs: 60_000 } : undefined;
            admitted.observe(hintsOf({ retryAfterMs, retryAfterSource, requests }));
          }
          const error = new SluiceError('rate_limited', 'too many', { status: 429 });
          later(
            () => {
              admitted.release(passed ? SUCCESS : { kind: 'failure', error });
              send();
            },
            passed ? answerMs : 0,
          );
        }, wayMs() + stalledMs);
      }, wayMs());
    });
  };
  for (let i = 0; i < 2 * workers; i++) send();
  for (const [atMs, perMinute] of changes) {
    later(() => {
      provider.change(atMs, perMinute);
      limit = perMinute;
    }, atMs);
  }
  const gapMs = 60_000 / (real * other);
  const another = (): void => {
    provider.arrive(runtime.clock.now());
    later(another, gapMs);
  };
  if (other > 0) later(another, gapMs);
  runtime.advance(forMs);
  const within = (times: readonly number[], fromMs: number, toMs: number): number =>
    times.filter((atMs) => atMs >= fromMs && atMs < toMs).length;
  return {
    rejectedAtMs: rejected,
    rejectedShare(fromMs, toMs) {
      const refused = within(rejected, fromMs, toMs);
      return refused / Math.max(1, refused + within(answered, fromMs, toMs));
    },
    rejectedIn: (fromMs, toMs) => within(rejected, fromMs, toMs),
    answeredIn: (fromMs, toMs) => within(answered, fromMs, toMs),
    mostRejectedIn(spanMs, fromMs) {
      const late = rejected.filter((atMs) => atMs >= fromMs);
      return Math.max(0, ...late.map((atMs) => within(late, atMs, atMs + spanMs)));
    },
  };
}

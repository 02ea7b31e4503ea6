import { Subject } from 'rxjs';
import type { Observable } from 'rxjs';
import type { SluiceSnapshot } from '../../../lib/client/Sluice.ts';
import type { BreakerState, SluiceEvent, SluiceFact } from '../../../lib/core/events.ts';
import type { DeploymentSnapshot } from '../../../lib/core/ports.ts';

type Told = { readonly [T in SluiceFact['type']]: Omit<Extract<SluiceFact, { readonly type: T }>, 'type'> };
type Context = Partial<Omit<SluiceEvent, 'type'>>;

const NOTHING = {
  message: undefined,
  status: undefined,
  requestId: undefined,
  usage: undefined,
  estimatedUsage: undefined,
  responseId: undefined,
  responseModel: undefined,
  serviceTier: undefined,
  systemFingerprint: undefined,
  finishReasons: [],
  contentChunks: 0,
  contentMs: 0,
  code: undefined,
};

const USUAL: Told = {
  queued: { where: 'quota', position: 1, waitMs: undefined },
  granted: { where: 'quota', waitedMs: 0 },
  left: { where: 'quota' },
  'attempt.started': { server: undefined },
  hints: { hints: {} as never, status: 200 },
  committed: { firstContentMs: 100 },
  'attempt.ended': { ...NOTHING, outcome: 'success', durationMs: 200 },
  'retry.scheduled': { waitMs: 10, code: 'server_error', waitSource: 'backoff' },
  'breaker.changed': { breaker: 'm', from: 'closed', to: 'open', reason: 'failures' },
  'limit.changed': { limiter: 'm', from: 8, to: 6, reason: 'rejected' },
  cooldown: { waitMs: 1_500, reason: 'rate_limited' },
  fallback: { from: 'm', to: 'n', code: 'server_error' },
  restart: { code: 'stream_truncated' },
  'store.changed': { to: 'lost', reason: 'TIMEOUT' },
  refused: { code: 'circuit_open', retryAfterMs: undefined },
  settled: { reservedTokens: 1, usedTokens: 1, refundedTokens: 0 },
  'call.ended': { outcome: 'success', code: undefined, message: undefined, attempts: 1, durationMs: 200 },
};

/** An event of call `c` to model `m`, as it usually is but for `more`. */
export function eventOf<T extends SluiceFact['type']>(
  type: T,
  atMs: number,
  more: Partial<Told[T]> & Context = {},
): SluiceEvent {
  const context = { callId: 'c', attempt: 1, model: 'm', tenant: 't', conversation: 'secret', atMs };
  return { ...context, type, ...USUAL[type], ...more } as unknown as SluiceEvent;
}

export function deploymentOf(name: string, more: Partial<DeploymentSnapshot> = {}): DeploymentSnapshot {
  return {
    ...{ name, client: 'main', model: name, inFlight: 0, limit: Infinity, cooldownMs: 0, unavailableMs: 0 },
    breaker: breakerOf('closed'),
    layers: [],
    ...more,
  };
}

export function breakerOf(state: BreakerState): DeploymentSnapshot['breaker'] {
  return { state, retryAfterMs: state === 'open' ? 1_000 : 0, consecutiveFailures: 0, calls: 0, failures: 0 };
}

export function snapshotOf(more: {
  readonly admission?: Partial<SluiceSnapshot['admission']>;
  readonly spend?: Partial<SluiceSnapshot['spend']>;
  readonly closed?: boolean;
}): SluiceSnapshot {
  return {
    closed: more.closed ?? false,
    calls: 0,
    callsByTenant: {},
    conversations: { conversations: 0, waiting: 0 },
    admission: { inFlight: 0, waiting: 0, models: {}, tenants: {}, priorities: {}, ...more.admission },
    spend: { day: '2026-01-01', models: {}, tenants: {}, capUsed: {}, ...more.spend },
  };
}

/** A client that says what it is told to. */
export class FakeSource {
  readonly #events = new Subject<SluiceEvent>();
  readonly events$: Observable<SluiceEvent> = this.#events.asObservable();
  standing: SluiceSnapshot = snapshotOf({});
  /** How often it was asked how things stand. */
  asked = 0;

  readonly snapshot = (): SluiceSnapshot => {
    this.asked++;
    return this.standing;
  };

  get observed(): boolean {
    return this.#events.observed;
  }

  tell(...events: readonly SluiceEvent[]): void {
    for (const event of events) this.#events.next(event);
  }

  end(): void {
    this.#events.complete();
  }
}

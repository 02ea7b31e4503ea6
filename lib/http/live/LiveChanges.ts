import type { SluiceEvent } from '../../core/events.ts';
import { clipped } from './clipped.ts';
import type { LiveChange } from './LiveFrame.ts';
import { Recent } from './Recent.ts';

const KEPT = 60;
/** What repeats within this time is one change, counted. */
const TOGETHER_MS: Readonly<Record<LiveChange['kind'], number>> = {
  breaker: 1_000,
  cooldown: 10_000,
  limit: 10_000,
  fallback: 60_000,
  store: 1_000,
};

type Told = Pick<LiveChange, 'kind' | 'name' | 'from' | 'to' | 'reason'>;

/** What changed for everyone lately: breakers, pauses, limits that were cut, models that others stand in for, and the store. */
export class LiveChanges {
  readonly #changes = new Recent<LiveChange>(KEPT);
  /** By what was told, the change that counts it, for as long as that takes more. */
  readonly #open = new Map<string, { readonly change: Writable<LiveChange>; readonly atMs: number }>();

  hear(event: SluiceEvent, wallMs: number): void {
    const told = changeOf(event);
    if (told === undefined) return;
    const { kind, name, to, reason } = told;
    const key = [kind, name, reason, kind === 'cooldown' || kind === 'limit' ? '' : to].join('\n');
    const open = this.#open.get(key);
    if (open !== undefined && event.atMs - open.atMs < TOGETHER_MS[kind]) {
      open.change.times++;
      open.change.to = to;
      return;
    }
    const change: LiveChange = { number: this.#changes.added + 1, wallMs, ...told, times: 1 };
    const gone = this.#changes.push(change);
    this.#open.set(key, { change, atMs: event.atMs });
    if (gone === undefined) return;
    for (const [other, { change: old }] of this.#open) if (old === gone) this.#open.delete(other);
  }

  /** All that are kept: those that are counted change after they were first shown. The newest last. */
  all(): readonly LiveChange[] {
    return this.#changes.since(0);
  }
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

function changeOf(event: SluiceEvent): Told | undefined {
  switch (event.type) {
    case 'breaker.changed':
      return { kind: 'breaker', name: clipped(event.breaker), from: event.from, to: event.to, reason: event.reason };
    case 'cooldown': {
      const to = `${Math.ceil(event.waitMs / 1_000)} s`;
      return { kind: 'cooldown', name: clipped(event.model ?? ''), from: undefined, to, reason: event.reason };
    }
    case 'limit.changed': {
      const { limiter, from, to, reason } = event;
      if (to >= from) return undefined;
      return { kind: 'limit', name: clipped(limiter), from: from.toFixed(0), to: to.toFixed(0), reason };
    }
    case 'fallback':
      return {
        kind: 'fallback',
        name: clipped(event.from ?? ''),
        from: clipped(event.from),
        to: clipped(event.to),
        reason: event.code,
      };
    case 'store.changed':
      return { kind: 'store', name: '', from: undefined, to: event.to, reason: event.reason ?? '' };
    default:
      return undefined;
  }
}

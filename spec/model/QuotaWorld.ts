import { SluiceError } from '../../lib/core/errors.ts';
import { DROPPED_UNSENT, SUCCESS } from '../../lib/core/outcome.ts';
import type { Outcome } from '../../lib/core/outcome.ts';
import { Cooldown } from '../../lib/limits/Cooldown.ts';
import { Quota } from '../../lib/limits/Quota.ts';
import { QuotaLayer } from '../../lib/limits/QuotaLayer.ts';
import { checkedQuotaRules } from '../../lib/limits/QuotaOptions.ts';
import type { QuotaReservation } from '../../lib/limits/QuotaReservation.ts';
import { QuotaRoute } from '../../lib/limits/QuotaRoute.ts';
import type { QuotaTicket } from '../../lib/limits/QuotaRoute.ts';
import type { Deed, World } from './explore.ts';
import { ModelClock, must } from './rules.ts';

interface Granted {
  readonly route: QuotaRoute;
  readonly reservation: QuotaReservation;
  readonly atMs: number;
  /** Requests that were taken, and have not been given back. */
  net: number;
  open: boolean;
}

const HINT_MS = 2;
const WAITS_MS = [3, Infinity] as const;
const PER_MS = 0.5;
/** No pause, and nothing that follows one, lasts as long. */
const OLD_MS = 5;
const ENDS: readonly [string, Outcome][] = [
  ['succeeds', SUCCESS],
  ['is cancelled unsent', DROPPED_UNSENT],
  ['is told to wait', { kind: 'failure', error: new SluiceError('rate_limited', 'no', { retryAfterMs: HINT_MS }) }],
];

/** Callers on two routes that share the account's layer, one of which has a layer of its own too. */
export class QuotaWorld implements World {
  readonly #clock = new ModelClock();
  readonly #quota: Quota;
  readonly #routes: readonly QuotaRoute[];
  readonly #line: QuotaTicket[] = [];
  readonly #granted: Granted[] = [];
  /** What has happened since the cooldown was last idle. */
  #cooling: { readonly what: string; readonly atMs: number }[] = [];
  #pausedUntilMs = -Infinity;
  #untilMs = Infinity;
  #left: number;
  #served: string[] = [];

  constructor(calls: number, make = (): Quota => new Quota(checkedQuotaRules({}))) {
    this.#left = calls;
    this.#quota = make();
    const layer = (name: string, burstRequests: number): QuotaLayer => {
      return new QuotaLayer(name, { requestsPerMinute: PER_MS * 60_000, burstRequests }, 0, 0);
    };
    const account = layer('account', 2);
    const cooldown = new Cooldown({ trialMs: 1, rampMs: 0, jitter: 0 }, () => 0);
    this.#routes = [[account], [account, layer('own', 1)]].map((layers) => new QuotaRoute(layers, cooldown, undefined));
  }

  deeds(): readonly Deed[] {
    const deeds: Deed[] = [];
    if (this.#left > 0) {
      this.#routes.forEach((route, at) => {
        for (const maxWaitMs of WAITS_MS) {
          deeds.push([`asks on route ${at + 1} for ${maxWaitMs} ms`, () => this.#ask(route, maxWaitMs)]);
        }
      });
    }
    this.#line.forEach((ticket, at) => deeds.push([`number ${at + 1} in line leaves`, () => this.#leave(ticket)]));
    this.#granted.forEach((granted, at) => {
      if (!granted.open) return;
      for (const [name, outcome] of ENDS) deeds.push([`${at + 1} ${name}`, () => this.#end(granted, outcome)]);
    });
    const { nowMs } = this.#clock;
    if (this.#untilMs < Infinity)
      deeds.push(['the time that was named comes', () => this.#pass(this.#untilMs - nowMs)]);
    deeds.push(['1 ms passes', () => this.#pass(1)]);
    return deeds;
  }

  key(): string {
    const { nowMs } = this.#clock;
    const line = this.#line.map(({ route, expiresAtMs }) => `${this.#routes.indexOf(route)}:${expiresAtMs - nowMs}`);
    const [account, own] = this.#routes[1]?.layers ?? [];
    const rested = this.#routes.every(({ layers }) => layers.every((layer) => layer.atRest(nowMs)));
    const granted = this.#granted.map(({ route, atMs, net, open }) => {
      if (!open && rested) return '';
      return `${this.#routes.indexOf(route)}:${rested ? 'old' : nowMs - atMs}:${net}${open ? ' open' : ''}`;
    });
    const levels = [account, own].map((layer) => layer?.requests?.level(nowMs));
    const cooling = this.#cooling.map(({ what, atMs }) => `${what}:${Math.min(OLD_MS, nowMs - atMs)}`);
    return [this.#left, line, granted.filter((text) => text !== ''), levels, cooling].join(' ');
  }

  wrong(): string | undefined {
    const { nowMs } = this.#clock;
    if (this.#quota.waiting !== this.#line.length)
      return `${this.#quota.waiting} wait, and ${this.#line.length} should`;
    for (const route of this.#routes) {
      const open = this.#granted.filter((granted) => granted.open && granted.route === route).length;
      if (route.open !== open) return `${route.open} hold a reservation, and ${open} should`;
      const head = this.#line.find((ticket) => ticket.route === route);
      if (route.line.head() !== head) return 'another one heads the line than came first';
      for (const layer of route.layers) if (this.#over(layer)) return this.#over(layer);
    }
    if (this.#line.length > 0 && !(this.#untilMs > nowMs && this.#untilMs < Infinity)) {
      return `is to be asked again at ${this.#untilMs}, and someone waits`;
    }
    return undefined;
  }

  ended(): boolean {
    const { nowMs } = this.#clock;
    const over = this.#left === 0 && this.#line.length === 0 && this.#granted.every(({ open }) => !open);
    return over && this.#routes.every(({ layers }) => layers.every((layer) => layer.atRest(nowMs)));
  }

  /** What a layer has let through beyond what it may, in any span of time. */
  #over(layer: QuotaLayer): string | undefined {
    const bucket = layer.requests;
    const through = this.#granted.filter(({ route }) => route.layers.includes(layer));
    for (const { atMs: fromMs } of through) {
      let net = 0;
      for (const granted of through) {
        if (granted.atMs < fromMs) continue;
        net += granted.net;
        if (net > (bucket?.burst ?? 0) + PER_MS * (granted.atMs - fromMs) + 1e-9)
          return `${layer.name} lets ${net} through`;
      }
    }
    return undefined;
  }

  #ask(route: QuotaRoute, maxWaitMs: number): unknown {
    this.#left--;
    const { nowMs } = this.#clock;
    const cost = { requests: 1, tokens: 0, explicit: true };
    const answer = this.#quota.enqueue(nowMs, route, { cost, maxWaitMs });
    if (answer.kind === 'refused') {
      must(answer.code === 'queue_timeout', `is refused with ${answer.code}`);
      must((answer.retryAfterMs ?? 0) > maxWaitMs, `is refused for a wait of ${answer.retryAfterMs} ms`);
    } else this.#line.push(answer);
    return [answer.kind, this.#serve()];
  }

  #leave(ticket: QuotaTicket): unknown {
    must(this.#quota.cancel(ticket), 'was not in line');
    must(!this.#quota.cancel(ticket), 'leaves twice');
    this.#line.splice(this.#line.indexOf(ticket), 1);
    return this.#serve();
  }

  #end(granted: Granted, outcome: Outcome): unknown {
    const { nowMs } = this.#clock;
    const level = (): number => granted.route.layers[0]?.requests?.level(nowMs) ?? 0;
    const before = level();
    if (outcome.kind !== 'dropped') granted.reservation.dispatched(nowMs);
    const settlement = granted.reservation.release(nowMs, outcome);
    must(settlement !== undefined, 'had been released before');
    const back = level() - before;
    must(
      back >= 0 && back <= 1 && (outcome.kind === 'dropped' || back === 0),
      `${back} comes back after ${outcome.kind}`,
    );
    granted.net -= back;
    granted.open = false;
    if (outcome.kind === 'failure') this.#pausedUntilMs = nowMs + HINT_MS;
    this.#cooling.push({ what: `${outcome.kind} ${this.#granted.indexOf(granted)}`, atMs: nowMs });
    must(granted.reservation.release(nowMs, SUCCESS) === undefined, 'is released twice');
    return [back.toFixed(6), this.#serve()];
  }

  #pass(ms: number): unknown {
    this.#clock.nowMs += ms;
    return this.#serve();
  }

  /** Does what the shell does after each event: all that can be done now. */
  #serve(): unknown {
    const { nowMs } = this.#clock;
    this.#served = [];
    for (let turn = 0; ; turn++) {
      must(turn < 20, 'there is always more to do');
      const open = this.#line.filter(({ route, cost }) => route.layersWaitMs(nowMs, cost) === 0);
      const heads = open.filter((ticket) => ticket.route.line.head() === ticket);
      const step = this.#quota.next(nowMs);
      if (step.kind === 'wait') {
        this.#untilMs = step.untilMs;
        const paused = this.#routes[0]?.cooldown.waitMs(nowMs) ?? 0;
        must(paused > 0 || heads.length === 0, 'someone waits who could go');
        if (this.#routes[0]?.cooldown.idle) this.#cooling = [];
        return this.#served;
      }
      const { ticket } = step;
      this.#line.splice(this.#line.indexOf(ticket), 1);
      this.#served.push(step.kind);
      if (step.kind === 'expired') {
        must(step.refusal.code === 'queue_timeout', `expires with ${step.refusal.code}`);
        continue;
      }
      must(ticket === heads[0], 'passes one that came earlier and could go');
      must(nowMs >= this.#pausedUntilMs, 'goes while a pause that was asked for lasts');
      this.#granted.push({ route: ticket.route, reservation: step.reservation, atMs: nowMs, net: 1, open: true });
      this.#cooling.push({ what: 'goes', atMs: nowMs });
    }
  }
}

import type { Attempt } from '../core/attempt.ts';
import { isSluiceError } from '../core/errors.ts';
import type { Clock } from '../core/runtime.ts';
import type { Exchange } from '../emulator/model/Exchange.ts';
import type { SimulatedCall } from './load/CallDrawer.ts';
import { Phases } from './Phases.ts';
import type { PhaseFigures, PhaseTally } from './Phases.ts';
import { Samples } from './Samples.ts';
import type { Percentiles } from './Samples.ts';
import { ShareWindow } from './ShareWindow.ts';
import { TenantTally } from './TenantTally.ts';
import type { TenantFigures } from './TenantTally.ts';
import type { TimelineRecorder } from './timeline/TimelineRecorder.ts';
import type { ProviderListener } from './upstream/providerSource.ts';

/** What one model costs, per million tokens. */
export interface Price {
  readonly inputPerMTok: number;
  readonly outputPerMTok: number;
}

/** What became of some of the calls. */
export interface CallFigures {
  readonly calls: number;
  readonly answered: number;
  /** From the call to its first content, of those that were answered. */
  readonly firstContentMs: Percentiles;
}

/** What became of all calls under one strategy. */
export interface RunFigures extends CallFigures {
  /** Failures by their code; `unknown` for what is none of ours. */
  readonly failed: Readonly<Record<string, number>>;
  /** Users that had left before they got the whole answer. */
  readonly left: number;
  /** Answers that were taken for whole and were not. */
  readonly truncated: number;
  /** Requests that reached a provider. */
  readonly attempts: number;
  readonly attemptsPerCall: number;
  readonly rateLimited: number;
  /** 429s per request sent. */
  readonly rateLimitedShare: number;
  /** The highest share of 429s in any five minutes with at least 20 requests. */
  readonly worstRateLimitedShare: number;
  /** From the call to its first request. */
  readonly queueMs: Percentiles;
  readonly totalMs: Percentiles;
  /** From the first 429 of a call to its first content, of calls that got over it. */
  readonly recoveryMs: Percentiles;
  /** From the first failure of a call to the last one. */
  readonly errorWindowMs: number;
  /** Turns that were sent after the turn before them had ended. */
  readonly turns: number;
  readonly turnsInOrder: number;
  readonly cost: number;
  readonly tenants: Readonly<Record<string, TenantFigures>>;
  /** In the order of the scenario. */
  readonly phases: readonly PhaseFigures[];
}

/** A call that has not ended. */
export interface Running {
  readonly call: SimulatedCall;
  readonly askedMs: number;
  sent: boolean;
  firstContentMs: number | undefined;
  rejectedMs: number | undefined;
  finished: boolean;
  inOrder: boolean;
  readonly phases: readonly PhaseTally[];
  readonly tenant: TenantTally | undefined;
}

interface ChunkLike {
  readonly choices?: readonly {
    readonly delta?: { readonly content?: string | null };
    readonly finish_reason?: string | null;
  }[];
}

/** Watches a run: the calls at one end, the provider at the other. */
export class Meter implements ProviderListener {
  readonly #clock: Clock;
  readonly #prices: (model: string) => Price | undefined;
  readonly #phases: Phases;
  readonly #running = new Map<string, Running>();
  /** The turns of each conversation that have not ended, in the order in which they were made. */
  readonly #openTurns = new Map<string, Running[]>();
  readonly #timeline: TimelineRecorder | undefined;
  readonly #tenants = new Map<string, TenantTally>();
  /** Whose call it is that a provider has not ended yet. */
  readonly #payers = new Map<Exchange, TenantTally>();
  readonly #failed = new Map<string, number>();
  readonly #firstContent = new Samples();
  readonly #queue = new Samples();
  readonly #total = new Samples();
  readonly #recovery = new Samples();
  readonly #window = new ShareWindow(5 * 60_000, 20);
  #calls = 0;
  #left = 0;
  #truncated = 0;
  #attempts = 0;
  #rateLimited = 0;
  #turns = 0;
  #turnsInOrder = 0;
  #cost = 0;
  #firstFailureMs = Infinity;
  #lastFailureMs = -Infinity;

  constructor(
    clock: Clock,
    prices: (model: string) => Price | undefined,
    phases: Phases = new Phases(),
    timeline?: TimelineRecorder,
  ) {
    this.#clock = clock;
    this.#prices = prices;
    this.#phases = phases;
    this.#timeline = timeline;
  }

  get calls(): number {
    return this.#calls;
  }

  /** Requests that have reached a provider. */
  get requests(): number {
    return this.#attempts;
  }

  get running(): number {
    return this.#running.size;
  }

  /** A call is made. What becomes of it is told of what this returns. */
  asked(call: SimulatedCall): Running {
    const nowMs = this.#clock.now();
    const running: Running = {
      call,
      askedMs: nowMs,
      sent: false,
      firstContentMs: undefined,
      rejectedMs: undefined,
      finished: false,
      inOrder: true,
      phases: this.#phases.of(call.model, nowMs),
      tenant: call.tenant === undefined ? undefined : this.#tenantOf(call.tenant),
    };
    this.#calls++;
    for (const phase of running.phases) phase.asked();
    this.#running.set(call.key, running);
    running.tenant?.asked();
    this.#timeline?.asked(nowMs);
    if (call.conversation !== undefined) {
      const open = this.#openTurns.get(call.conversation);
      if (open === undefined) this.#openTurns.set(call.conversation, [running]);
      else open.push(running);
    }
    return running;
  }

  /** A value that a call has got. */
  value(running: Running, value: unknown): void {
    const choice = (value as ChunkLike).choices?.[0];
    if (choice?.delta?.content) running.firstContentMs ??= this.#clock.now();
    if (choice?.finish_reason) running.finished = true;
  }

  completed(running: Running): void {
    this.#ended(running);
    if (!running.finished) {
      this.#truncated++;
      this.#failure('truncated', running);
      return;
    }
    const nowMs = this.#clock.now();
    const { askedMs, firstContentMs: contentAtMs = nowMs, rejectedMs } = running;
    const [firstContentMs, totalMs] = [contentAtMs - askedMs, nowMs - askedMs];
    this.#firstContent.add(firstContentMs);
    this.#total.add(totalMs);
    if (rejectedMs !== undefined) this.#recovery.add(contentAtMs - rejectedMs);
    running.tenant?.answered(firstContentMs);
    for (const phase of running.phases) phase.answered(firstContentMs, totalMs);
    this.#timeline?.answered(askedMs, firstContentMs, totalMs);
  }

  failed(running: Running, error: unknown): void {
    this.#ended(running);
    this.#failure(isSluiceError(error) ? error.code : 'unknown', running);
  }

  left(running: Running): void {
    this.#ended(running);
    this.#left++;
    this.#timeline?.left(running.askedMs, this.#clock.now());
  }

  sent({ request }: Attempt): void {
    const running = this.#of(request);
    if (running === undefined || running.sent) return;
    running.sent = true;
    const queueMs = this.#clock.now() - running.askedMs;
    this.#queue.add(queueMs);
    running.tenant?.sent(queueMs);
    this.#timeline?.sent(running.askedMs, queueMs);
    const { conversation } = running.call;
    const oldest = conversation === undefined ? undefined : this.#openTurns.get(conversation)?.[0];
    running.inOrder = oldest === undefined || oldest === running;
  }

  arrived(exchange: Exchange, { request }: Attempt, status: number | undefined): void {
    const rejected = status === 429;
    const nowMs = this.#clock.now();
    this.#attempts++;
    this.#window.add(nowMs, rejected);
    const running = this.#of(request);
    if (running !== undefined) for (const phase of running.phases) phase.arrived(rejected);
    this.#timeline?.arrived(nowMs, running?.askedMs, rejected);
    if (running?.tenant !== undefined && exchange.verdict === 'admitted') this.#payers.set(exchange, running.tenant);
    if (!rejected) return;
    this.#rateLimited++;
    running?.tenant?.rateLimited();
    if (running !== undefined) running.rejectedMs ??= nowMs;
  }

  over(exchange: Exchange): void {
    const payer = this.#payers.get(exchange);
    this.#payers.delete(exchange);
    const price = exchange.model === undefined ? undefined : this.#prices(exchange.model);
    if (price === undefined || exchange.verdict !== 'admitted') return;
    const { inputPerMTok, outputPerMTok } = price;
    const cost = (exchange.promptTokens * inputPerMTok + exchange.sentTokens() * outputPerMTok) / 1_000_000;
    this.#cost += cost;
    payer?.paid(cost);
  }

  figures(): RunFigures {
    const tenants = [...this.#tenants].map(([name, tally]) => [name, tally.figures()] as const);
    return {
      calls: this.#calls,
      answered: this.#firstContent.size,
      failed: Object.fromEntries([...this.#failed].sort(([a], [b]) => (a < b ? -1 : 1))),
      left: this.#left,
      truncated: this.#truncated,
      attempts: this.#attempts,
      attemptsPerCall: this.#attempts / Math.max(1, this.#calls),
      rateLimited: this.#rateLimited,
      rateLimitedShare: this.#rateLimited / Math.max(1, this.#attempts),
      worstRateLimitedShare: this.#window.worst,
      queueMs: this.#queue.percentiles(),
      firstContentMs: this.#firstContent.percentiles(),
      totalMs: this.#total.percentiles(),
      recoveryMs: this.#recovery.percentiles(),
      errorWindowMs: Math.max(0, this.#lastFailureMs - this.#firstFailureMs),
      turns: this.#turns,
      turnsInOrder: this.#turnsInOrder,
      cost: this.#cost,
      tenants: Object.fromEntries(tenants),
      phases: this.#phases.figures(),
    };
  }

  #ended(running: Running): void {
    const { call } = running;
    this.#running.delete(call.key);
    if (call.conversation === undefined) return;
    const open = this.#openTurns.get(call.conversation) as Running[];
    if (open.length === 1) this.#openTurns.delete(call.conversation);
    else open.splice(open.indexOf(running), 1);
    this.#turns++;
    if (running.inOrder) this.#turnsInOrder++;
  }

  #failure(code: string, { askedMs }: Running): void {
    this.#failed.set(code, (this.#failed.get(code) ?? 0) + 1);
    const nowMs = this.#clock.now();
    this.#timeline?.failed(askedMs, nowMs);
    this.#firstFailureMs = Math.min(this.#firstFailureMs, nowMs);
    this.#lastFailureMs = nowMs;
  }

  #of(request: Readonly<Record<string, unknown>>): Running | undefined {
    const { call } = request['metadata'] as { readonly call?: string };
    return call === undefined ? undefined : this.#running.get(call);
  }

  #tenantOf(name: string): TenantTally {
    let tenant = this.#tenants.get(name);
    if (tenant === undefined) this.#tenants.set(name, (tenant = new TenantTally()));
    return tenant;
  }
}

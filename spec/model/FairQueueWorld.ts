import { FairQueue } from '../../lib/limits/FairQueue.ts';
import type { FairWaiter } from '../../lib/limits/FairQueue.ts';
import { sizeClassOf } from '../../lib/limits/work.ts';
import type { Deed, World } from './explore.ts';
import { must } from './rules.ts';

export interface Load {
  readonly tenant: string;
  readonly weight: number;
  readonly tokens: number;
}

interface Member extends FairWaiter {
  readonly name: string;
  waiting: boolean;
}

/** What two tenants got of the work since both of them have been waiting without a break. */
interface Race {
  readonly tenants: readonly [string, string];
  readonly got: [number, number];
}

/** Waiters of tenants that join in their order, leave from anywhere, are parked, and are taken as their turn comes. */
export class FairQueueWorld implements World {
  readonly #queue: FairQueue<Member>;
  readonly #loads: readonly Load[];
  readonly #line: Member[] = [];
  readonly #blocked = new Set<string>();
  readonly #history: string[] = [];
  readonly #tenants: readonly string[];
  #races: Race[] = [];
  #joined = 0;
  #wasBlocked = false;
  #offered: readonly Member[] = [];

  constructor(loads: readonly Load[], make = (): FairQueue<Member> => new FairQueue<Member>()) {
    this.#loads = loads;
    this.#tenants = [...new Set(loads.map(({ tenant }) => tenant))];
    this.#queue = make();
  }

  deeds(): readonly Deed[] {
    const deeds: Deed[] = [];
    const load = this.#loads[this.#joined];
    if (load) deeds.push([`one of ${load.tenant} joins`, () => this.#join(load)]);
    for (const member of this.#line) deeds.push([`${member.name} leaves`, () => this.#leave(member)]);
    if (this.#offered.length > 0) deeds.push(['the next one is taken', () => this.#take()]);
    for (const tenant of this.#tenants) {
      if (this.#blocked.has(tenant)) deeds.push([`${tenant} is let in again`, () => this.#letIn(tenant)]);
    }
    const [blocked] = this.#tenants;
    if (blocked && !this.#wasBlocked && this.#line.some(({ tenant }) => tenant === blocked)) {
      deeds.push([`${blocked} is blocked`, () => this.#block(blocked)]);
    }
    return deeds;
  }

  /** Tags are sums of all that was taken: no two histories are known to be alike. */
  key(): string {
    return this.#history.join();
  }

  wrong(): string | undefined {
    const queue = this.#queue;
    if (queue.size !== this.#line.length) return `${queue.size} wait, and ${this.#line.length} should`;
    if (queue.oldest() !== this.#line[0] || queue.youngest() !== this.#line.at(-1))
      return 'confuses who came first and last';
    if (this.#line.length === 0 && queue.tenants > 0) return `${queue.tenants} tenants are remembered of nobody`;
    for (const member of this.#line) {
      const first = this.#line.find((other) => sameFlow(other, member));
      if (queue.leads(member) !== (first === member))
        return `${member.name} ${first === member ? 'does not lead' : 'leads'}`;
    }
    const offered = this.#offered;
    const open = this.#line.filter(({ tenant }) => !this.#blocked.has(tenant));
    if (offered.some((member) => !open.includes(member))) return 'offers one that must not go';
    const classes = new Set(open.map(({ cost }) => sizeClassOf(cost.tokens))).size;
    if (offered.length !== classes) return `offers ${offered.length} of ${classes} classes of size`;
    return this.#unfair();
  }

  ended(): boolean {
    return this.#joined === this.#loads.length && this.#line.length === 0;
  }

  /** While two tenants wait, neither is ahead by more than one grant of each, whatever else goes on. */
  #unfair(): string | undefined {
    for (const { tenants, got } of this.#races) {
      const [mine, others] = tenants.map((tenant) => this.#largest(tenant)) as [number, number];
      if (Math.abs(got[0] - got[1]) > mine + others + 1e-9) return `${tenants.join(' and ')} got ${got.join(' and ')}`;
    }
    return undefined;
  }

  #largest(tenant: string): number {
    return Math.max(
      ...this.#loads.filter((load) => load.tenant === tenant).map(({ tokens, weight }) => tokens / weight),
    );
  }

  /** Begins the races of those who wait now, and ends those of others. */
  #race(): void {
    const running = this.#tenants.filter((tenant) => {
      return !this.#blocked.has(tenant) && this.#line.some((member) => member.tenant === tenant);
    });
    const pairs = running.flatMap((a, i) => running.slice(i + 1).map((b): [string, string] => [a, b]));
    this.#races = pairs.map((tenants) => {
      const known = this.#races.find((race) => race.tenants[0] === tenants[0] && race.tenants[1] === tenants[1]);
      return known ?? { tenants, got: [0, 0] };
    });
  }

  #join({ tenant, weight, tokens }: Load): void {
    const order = this.#joined++;
    const name = `${tenant}${order + 1}`;
    const member: Member = { name, tenant, weight, cost: { requests: 1, tokens }, order, waiting: true };
    this.#queue.join(member);
    this.#line.push(member);
    this.#note('j');
  }

  #leave(member: Member): void {
    must(this.#queue.leave(member), `${member.name} was not there`);
    must(!this.#queue.leave(member), `${member.name} leaves twice`);
    this.#gone(member);
    this.#note(`l${member.name}`);
  }

  #take(): unknown {
    const first = this.#offered[0] as Member;
    this.#queue.take(first);
    for (const { tenants, got } of this.#races) {
      const at = tenants.indexOf(first.tenant);
      if (at >= 0) got[at as 0 | 1] += first.cost.tokens / first.weight;
    }
    const unfair = this.#unfair();
    must(unfair === undefined, unfair ?? '');
    this.#gone(first);
    this.#note('t');
    return first.name;
  }

  #block(tenant: string): void {
    this.#blocked.add(tenant);
    this.#wasBlocked = true;
    this.#note('b');
  }

  #letIn(tenant: string): void {
    this.#blocked.delete(tenant);
    this.#queue.unpark(tenant);
    this.#note(`i${tenant}`);
  }

  #gone(member: Member): void {
    this.#line.splice(this.#line.indexOf(member), 1);
  }

  #note(deed: string): void {
    this.#history.push(deed);
    this.#offered = this.#queue.candidates(({ tenant }) => this.#blocked.has(tenant));
    this.#race();
  }
}

function sameFlow(a: Member, b: Member): boolean {
  return a.tenant === b.tenant && sizeClassOf(a.cost.tokens) === sizeClassOf(b.cost.tokens);
}

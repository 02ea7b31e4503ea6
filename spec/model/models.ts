import { AdmissionWorld } from './AdmissionWorld.ts';
import type { Plan } from './AdmissionWorld.ts';
import { BreakerWorld } from './BreakerWorld.ts';
import { BucketWorld } from './BucketWorld.ts';
import { BudgetWorld } from './BudgetWorld.ts';
import { CooldownWorld } from './CooldownWorld.ts';
import type { World } from './explore.ts';
import { FairQueueWorld } from './FairQueueWorld.ts';
import type { Load } from './FairQueueWorld.ts';
import { LanesWorld } from './LanesWorld.ts';
import { QuotaWorld } from './QuotaWorld.ts';
import { SlotsWorld } from './SlotsWorld.ts';
import * as broken from './brokenMachines.ts';

export interface ModelCheck {
  readonly machine: string;
  /** What is explored among the tests, and what by `npm run prove model-checks`. */
  readonly short: () => World;
  readonly long: () => World;
  readonly of: readonly [short: string, long: string];
  /** Machines that are wrong in one thing, and what is found to be wrong with them. */
  readonly broken: readonly (readonly [what: string, make: () => World, found: RegExp])[];
}

const loads: readonly Load[] = [
  { tenant: 'a', weight: 1, tokens: 1 },
  { tenant: 'a', weight: 1, tokens: 8 },
  { tenant: 'b', weight: 2, tokens: 1 },
  { tenant: 'a', weight: 1, tokens: 1 },
  { tenant: 'c', weight: 1, tokens: 2 },
];
const greedy: readonly Load[] = ['a', 'a', 'a', 'b'].map((tenant) => ({ tenant, weight: 1, tokens: 1 }));
const plans: readonly Plan[] = [
  { model: 'm', tenant: 'x', priority: 'interactive' },
  { model: 'm', tenant: 'y', priority: 'batch' },
  { model: 'n', tenant: 'y', priority: 'interactive' },
];

export const MODEL_CHECKS: readonly ModelCheck[] = [
  {
    machine: 'ConcurrencyLimit',
    short: () => new SlotsWorld(5, [1, 2]),
    long: () => new SlotsWorld(8, [2, 1, 3]),
    of: ['5 callers', '8 callers'],
    broken: [
      [
        'gives a slot back twice',
        () => new SlotsWorld(3, [1, 2], broken.doublyReleasing),
        /in flight, and \d hold a slot/,
      ],
      ['forgets that one has left', () => new SlotsWorld(3, [1, 2], broken.neverLeaving), /leaves twice/],
    ],
  },
  {
    machine: 'ConversationLanes',
    short: () => new LanesWorld(5),
    long: () => new LanesWorld(8),
    of: ['5 turns', '8 turns'],
    broken: [
      [
        'lets nobody start after a turn',
        () => new LanesWorld(3, broken.forgetfulLanes),
        /nobody starts, and one waits/,
      ],
      ['expires nobody', () => new LanesWorld(3, broken.patientLanes), /others expire than those overdue/],
    ],
  },
  {
    machine: 'CircuitBreaker',
    short: () => new BreakerWorld(5),
    long: () => new BreakerWorld(6),
    of: ['5 calls', '6 calls'],
    broken: [
      [
        'heeds calls of an earlier epoch',
        () => new BreakerWorld(4, broken.forgetfulBreaker),
        /of an earlier epoch changes/,
      ],
      ['lets all probe', () => new BreakerWorld(4, broken.leakyBreaker), /passes while open/],
    ],
  },
  {
    machine: 'FairQueue',
    short: () => new FairQueueWorld(loads.slice(0, 4)),
    long: () => new FairQueueWorld(loads),
    of: ['4 waiters of 2 tenants', '5 waiters of 3 tenants'],
    broken: [
      ['charges nobody', () => new FairQueueWorld(greedy, broken.freeQueue), /a and b got 3 and 0/],
      ['lets nobody leave', () => new FairQueueWorld(greedy, broken.clingingQueue), /was not there/],
    ],
  },
  {
    machine: 'TokenBucket',
    short: () => new BucketWorld(3, 1),
    long: () => new BucketWorld(4, 1),
    of: ['3 charges', '4 charges'],
    broken: [
      ['refills without its lag', () => new BucketWorld(3, 1, broken.hastyBucket), /tokens in \d ms/],
      ['says that it gave back', () => new BucketWorld(3, 1, broken.lyingBucket), /and 1 came back/],
    ],
  },
  {
    machine: 'Quota',
    short: () => new QuotaWorld(2),
    long: () => new QuotaWorld(3),
    of: ['2 calls on 2 routes', '3 calls on 2 routes'],
    broken: [
      ['grants a millisecond early', () => new QuotaWorld(2, broken.hastyQuota), /lets .* through|while a pause/],
      ['never wakes anyone', () => new QuotaWorld(2, broken.sleepyQuota), /asked again at Infinity/],
    ],
  },
  {
    machine: 'Cooldown',
    short: () => new CooldownWorld(5),
    long: () => new CooldownWorld(6),
    of: ['5 events', '6 events'],
    broken: [
      [
        'opens a millisecond early',
        () => new CooldownWorld(3, broken.hastyCooldown),
        /while the first one back is out/,
      ],
      [
        'takes any answer for that of the trial',
        () => new CooldownWorld(5, broken.easyCooldown),
        /of an earlier pause changes/,
      ],
    ],
  },
  {
    machine: 'RetryBudget',
    short: () => new BudgetWorld(3),
    long: () => new BudgetWorld(4),
    of: ['3 attempts', '4 attempts'],
    broken: [
      ['takes every retry for a small one', () => new BudgetWorld(3, broken.cheapBudget), /a retry of 2 is allowed/],
    ],
  },
  {
    machine: 'Admission',
    short: () => new AdmissionWorld(plans, 1),
    long: () => new AdmissionWorld(plans, 2),
    of: ['3 calls and 1 ms', '3 calls and 2 ms'],
    broken: [
      [
        'keeps the slots of what has ended',
        () => new AdmissionWorld(plans, 1, broken.keepingAdmission),
        /in flight, and 0/,
      ],
      ['never wakes anyone', () => new AdmissionWorld(plans, 1, broken.sleepyAdmission), /asked again at Infinity/],
    ],
  },
];

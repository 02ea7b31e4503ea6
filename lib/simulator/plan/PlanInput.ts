import type { Scenario } from '../scenario/Scenario.ts';

/** What is to hold for the calls of one tenant. */
export interface PlanTenantTarget {
  /** Time from a call to its first content, of the calls that are answered: at most so much. */
  readonly firstContentP50Ms?: number | undefined;
  readonly firstContentP95Ms?: number | undefined;
  readonly firstContentP99Ms?: number | undefined;
  /** Answers per call: at least so much, from 0 to 1. Default: 0.99, since times are those of the answered calls. */
  readonly answeredShare?: number | undefined;
}

/** What is to hold. Every target that is named must be met at once. */
export interface PlanTarget extends PlanTenantTarget {
  /** Time from a call to the end of its answer: at most so much. */
  readonly totalP95Ms?: number | undefined;
  /** 429s per request sent: at most so much, from 0 to 1. */
  readonly rateLimitedShare?: number | undefined;
  /** At the prices of the policy: at most so much. */
  readonly costPerMonth?: number | undefined;
  /** By the name of a tenant, beside the targets of all calls together. */
  readonly tenants?: Readonly<Record<string, PlanTenantTarget>> | undefined;
}

/** A limit, as it is called at the provider and in the policy. */
export type PlanRate = 'requestsPerMinute' | 'tokensPerMinute' | 'burstRequests' | 'burstTokens';

/** What may stand in a policy. */
export type PlanValue = number | string | boolean;

/** A number that is looked for. */
export type PlanSearch =
  /**
   * The smallest limit, at the provider and in the policy alike. `model`: that of a model, beside the one of its account.
   * `client` may be left out where there is only one.
   */
  | {
      readonly kind: 'quota';
      readonly rate: PlanRate;
      readonly client?: string | undefined;
      readonly model?: string | undefined;
      /** Default: a twentieth of what the load asks for. */
      readonly from?: number | undefined;
      /** Default: sixteen times what the load asks for. */
      readonly to?: number | undefined;
    }
  /** The smallest number of accounts such as that of `client`, each with a quota of its own; calls go to the least loaded. */
  | {
      readonly kind: 'deployments';
      readonly client?: string | undefined;
      /** Default: 1. */
      readonly from?: number | undefined;
      /** Default: 16. */
      readonly to?: number | undefined;
    }
  /** The smallest part of the calls of `model` that have to be asked of `cheaper` instead, by the application. */
  | {
      readonly kind: 'modelShare';
      readonly model: string;
      readonly cheaper: string;
      /** Default: 0. */
      readonly from?: number | undefined;
      /** Default: 1. */
      readonly to?: number | undefined;
    }
  /** The largest load, as a multiple of that of the scenario. */
  | {
      readonly kind: 'load';
      /** Default: 0.1. */
      readonly from?: number | undefined;
      /** Default: 10. */
      readonly to?: number | undefined;
    }
  /**
   * A setting of the policy, by its path: `maxInFlight`, or a list of names. `best` looks for the value that leaves most room
   * below the targets, and does not expect one end to be better; `smallest` and `largest` do.
   */
  | {
      readonly kind: 'policy';
      readonly path: string | readonly (string | number)[];
      readonly from?: number | undefined;
      readonly to?: number | undefined;
      /** All that there are, in place of `from` and `to`. In order, where the search is for the smallest or largest. */
      readonly values?: readonly PlanValue[] | undefined;
      /** Default: best. */
      readonly search?: 'smallest' | 'largest' | 'best' | undefined;
    };

/** A load, the targets that it is to meet, and the numbers that are looked for. */
export interface PlanInput {
  /** Default: the name of the scenario. */
  readonly name?: string | undefined;
  /** The load, the providers, and the policy to begin with. Its strategies are not looked at. */
  readonly scenario: Scenario;
  /** All of it at once. */
  readonly target: PlanTarget;
  /** Numbers earlier in the list are made as small as they can be before later ones. */
  readonly find: readonly PlanSearch[];
  /** Runs of each candidate, each with a seed of its own. At least 3; default: 5. */
  readonly seeds?: number | undefined;
  /** How far apart candidates are at the least, as a part of the number. Default: 0.02. */
  readonly precision?: number | undefined;
  /** Loads that go on evenly are cut to about so many calls. Default: 10,000. */
  readonly callsPerRun?: number | undefined;
}

/** What a plan has unless it says otherwise. */
export const PLAN_DEFAULTS = {
  seeds: 5,
  precision: 0.02,
  callsPerRun: 10_000,
  answeredShare: 0.99,
} as const;

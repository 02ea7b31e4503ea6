import type { Command } from './Command.ts';

export interface CommandEntry {
  /** One line of `sluice --help`. */
  readonly summary: string;
  /** Loads the command, and what it needs, when it is asked for. */
  load(): Promise<Command>;
}

/** What `sluice` can do, in the order in which help lists it. */
export const COMMANDS: Readonly<Record<string, CommandEntry>> = {
  demo: {
    summary: 'send one load through the bare SDK and through Sluice, and compare',
    load: async () => (await import('./demo.ts')).demo,
  },
  emulate: {
    summary: 'run a fake provider with quotas, latency and faults',
    load: async () => (await import('./emulate.ts')).emulate,
  },
  serve: {
    summary: 'run an OpenAI-compatible gateway under a policy',
    load: async () => (await import('./serve.ts')).serve,
  },
  simulate: {
    summary: 'say what a load would meet, in virtual time',
    load: async () => (await import('./simulate.ts')).simulateCommand,
  },
  plan: {
    summary: 'find the smallest quota, or the numbers of a policy, for a load and its targets',
    load: async () => (await import('./plan.ts')).planCommand,
  },
  check: {
    summary: 'say what a policy does, or what is wrong with it',
    load: async () => (await import('./check.ts')).check,
  },
};

import type OpenAI from 'openai';
import { fromEvent, takeUntil } from 'rxjs';
import { positive, wholeNumber } from '../core/checks.ts';
import { isSluiceError } from '../core/errors.ts';
import { systemRuntime } from '../core/runtime.ts';
import { startEmulator } from '../emulator/index.ts';
import { text } from '../operators/text.ts';
import { chat } from '../sources/chat.ts';
import type { Command, Terminal } from './Command.ts';
import { bareAsker, sluiceAsker } from './demo/askers.ts';
import type { DemoQuota } from './demo/askers.ts';
import { classicLoad } from './demo/load.ts';
import { runLoad } from './demo/runLoad.ts';
import { demoTable } from './demo/table.ts';
import type { DemoResult } from './demo/table.ts';
import { numberFlag, parseFlags, wrongFlag } from './flags.ts';

const DEFAULTS = { requestsPerMinute: 600, burstRequests: 8, calls: 100, model: 'gpt-5.5' } as const;
const INTERRUPTED = 130;

const help = `Usage: sluice demo [flags]

Streams one answer, then sends the same load through the bare SDK and through Sluice, and compares them. Everything
runs against a fake provider on this machine; no key is needed.

  --rpm N       requests a minute that the provider allows (${DEFAULTS.requestsPerMinute})
  --burst N     requests at once that it allows after a pause (${DEFAULTS.burstRequests})
  --calls N     calls of the load; three in ten belong to five conversations (${DEFAULTS.calls})
  --live        asks the real service one question instead; needs OPENAI_API_KEY
  --model NAME  the model to ask (${DEFAULTS.model})`;

const FLAGS = {
  rpm: { type: 'string' },
  burst: { type: 'string' },
  calls: { type: 'string' },
  live: { type: 'boolean' },
  model: { type: 'string' },
} as const;

/** `sluice demo`. */
export const demo: Command = {
  help,
  async run(args, terminal) {
    const { values } = parseFlags(args, FLAGS);
    const { model = DEFAULTS.model } = values;
    const requestsPerMinute = numberFlag('rpm', values.rpm, positive) ?? DEFAULTS.requestsPerMinute;
    const burstRequests = numberFlag('burst', values.burst, wholeNumber) ?? DEFAULTS.burstRequests;
    const calls = numberFlag('calls', values.calls, wholeNumber) ?? DEFAULTS.calls;

    const interruption = new AbortController();
    void terminal.interrupted().then(() => interruption.abort());
    const { signal } = interruption;
    const code =
      values.live === true
        ? await askLive(model, terminal, signal)
        : await compare(model, { requestsPerMinute, burstRequests }, calls, terminal, signal);
    if (!signal.aborted) return code;
    terminal.print('\nInterrupted.');
    return INTERRUPTED;
  },
};

async function compare(
  model: string,
  quota: DemoQuota,
  calls: number,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<number> {
  const { OpenAI } = await import('openai');
  const emulator = await startEmulator(quota);
  const openai = new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none' });
  const { requestsPerMinute, burstRequests } = quota;
  try {
    terminal.print(
      `A fake provider at ${emulator.baseURL}: ${requestsPerMinute} requests a minute, ${burstRequests} at once.\n`,
    );
    await streamOne(openai, model, terminal, signal);

    const load = classicLoad(calls);
    terminal.print(
      `\nNow ${calls} calls at once, ${load.filter((call) => call.conversation).length} of them in conversations.\n`,
    );
    const results: DemoResult[] = [];
    for (const [name, ask] of [
      ['bare SDK', bareAsker(openai, model)],
      ['Sluice', sluiceAsker(openai, model, quota)],
    ] as const) {
      if (signal.aborted) return INTERRUPTED;
      results.push(await runLoad(name, ask, load, emulator, terminal, systemRuntime, signal));
    }
    if (signal.aborted) return INTERRUPTED;
    terminal.print(`\n${demoTable(results)}\n\n${bestPossible(calls, quota)}`);
    return results.at(-1)?.answered === calls ? 0 : 1;
  } finally {
    await emulator.close();
  }
}

/** What no client can beat: the provider lets the burst through at once, and then one by one. */
function bestPossible(calls: number, { requestsPerMinute, burstRequests }: DemoQuota): string {
  const startMs = Math.max(0, Math.ceil(0.95 * calls) - burstRequests) * (60_000 / requestsPerMinute);
  const share = `${(startMs / 1000).toFixed(1)} s`;
  return `At this quota the p95 of any client that answers all ${calls} is at least ${share} and the time of one answer's first word.`;
}

async function askLive(model: string, terminal: Terminal, signal: AbortSignal): Promise<number> {
  if (!process.env['OPENAI_API_KEY']) throw wrongFlag('--live needs the environment variable OPENAI_API_KEY');
  const { OpenAI } = await import('openai');
  try {
    await streamOne(new OpenAI(), model, terminal, signal);
    return 0;
  } catch (error) {
    if (!isSluiceError(error)) throw error;
    terminal.complain(`\n${error.code}: ${error.message}`);
    return 1;
  }
}

async function streamOne(openai: OpenAI, model: string, terminal: Terminal, signal: AbortSignal): Promise<void> {
  const messages = [{ role: 'user' as const, content: 'What does a sluice do?' }];
  await chat(openai, { model, messages })
    .pipe(text(), takeUntil(fromEvent(signal, 'abort')))
    .forEach((piece) => terminal.write(piece));
  terminal.write('\n');
}

import { readFile } from 'node:fs/promises';
import { oneOf, positive, ratio, wholeNumber, zeroOrMore } from '../core/checks.ts';
import { DIALECTS, startEmulator } from '../emulator/index.ts';
import type { Emulator, EmulatorOptions, FaultRule } from '../emulator/index.ts';
import type { Command } from './Command.ts';
import { numberFlag, parseFlags, wrongFlag } from './flags.ts';

const help = `Usage: sluice emulate [flags]

Runs a fake provider until it is interrupted, then prints what it saw as JSON.

  --port N           port to listen on; 0 takes any that is free (0)
  --host NAME        address to listen on (127.0.0.1)
  --rpm N            requests a minute (no limit)
  --burst N          requests at once after a pause (a second's worth, at least 1)
  --tpm N            tokens a minute, counted from the prompt and the output limit (no limit)
  --burst-tokens N   tokens at once after a pause (a minute's worth)
  --concurrent N     requests that may run at once (no limit)
  --noise SHARE      part of the quota that another client uses up, 0 to 1 (0)
  --no-count-rejected  refused requests do not use up refill
  --latency MS       time to the first token (50)
  --cadence MS       time from one token to the next (5)
  --tokens N         tokens in an answer (64)
  --chunk N          tokens in a chunk (1)
  --dialect NAME     ${Object.keys(DIALECTS).join(', ')} (openai)
  --model NAME       a model there is; may be repeated (every name is one)
  --seed N           names the texts and the chances (1)
  --script FILE      JSON list of faults, used in order
  --json             prints the address as JSON`;

const FLAGS = {
  port: { type: 'string' },
  host: { type: 'string' },
  rpm: { type: 'string' },
  burst: { type: 'string' },
  tpm: { type: 'string' },
  'burst-tokens': { type: 'string' },
  concurrent: { type: 'string' },
  noise: { type: 'string' },
  'count-rejected': { type: 'boolean' },
  latency: { type: 'string' },
  cadence: { type: 'string' },
  tokens: { type: 'string' },
  chunk: { type: 'string' },
  dialect: { type: 'string' },
  model: { type: 'string', multiple: true },
  seed: { type: 'string' },
  script: { type: 'string' },
  json: { type: 'boolean' },
} as const;

/** `sluice emulate`. */
export const emulate: Command = {
  help,
  async run(args, terminal) {
    const { values } = parseFlags(args, FLAGS);
    const options: EmulatorOptions = {
      port: numberFlag('port', values.port, (option, value) => wholeNumber(option, value, 0)),
      host: values.host,
      requestsPerMinute: numberFlag('rpm', values.rpm, positive),
      burstRequests: numberFlag('burst', values.burst, positive),
      tokensPerMinute: numberFlag('tpm', values.tpm, positive),
      burstTokens: numberFlag('burst-tokens', values['burst-tokens'], positive),
      maxConcurrent: numberFlag('concurrent', values.concurrent, wholeNumber),
      noiseShare: numberFlag('noise', values.noise, ratio),
      countRejected: values['count-rejected'],
      firstTokenMs: numberFlag('latency', values.latency, zeroOrMore),
      tokenMs: numberFlag('cadence', values.cadence, zeroOrMore),
      tokens: numberFlag('tokens', values.tokens, wholeNumber),
      chunkTokens: numberFlag('chunk', values.chunk, wholeNumber),
      dialect: values.dialect === undefined ? undefined : oneOf('--dialect', values.dialect, Object.keys(DIALECTS)),
      models: values.model && Object.fromEntries(values.model.map((name) => [name, {}])),
      seed: numberFlag('seed', values.seed),
      script: values.script === undefined ? undefined : await readScript(values.script),
    };
    const interrupted = terminal.interrupted();
    const emulator = await listening(options);
    const { url, baseURL, port } = emulator;
    terminal.print(values.json === true ? JSON.stringify({ url, baseURL, port }) : `Listening on ${baseURL}`);
    await interrupted;
    const report = emulator.report();
    await emulator.close();
    terminal.print(JSON.stringify(report, undefined, 2));
    return 0;
  },
};

/** An address that cannot be had is the command line's fault. */
async function listening(options: EmulatorOptions): Promise<Emulator> {
  try {
    return await startEmulator(options);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'EADDRINUSE') throw wrongFlag(`port ${options.port ?? 0} is taken`);
    if (code === 'EACCES') throw wrongFlag(`port ${options.port ?? 0} needs rights that this process has not`);
    if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') throw wrongFlag('--host is no address of this machine');
    throw error;
  }
}

async function readScript(path: string): Promise<readonly FaultRule[]> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch {
    throw wrongFlag(`--script: cannot read ${path}`);
  }
  try {
    return JSON.parse(text) as readonly FaultRule[];
  } catch {
    throw wrongFlag(`--script: ${path} is not JSON`);
  }
}

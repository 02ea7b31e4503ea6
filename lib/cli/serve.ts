import { zeroOrMore } from '../core/checks.ts';
import { createSluice } from '../client/createSluice.ts';
import { isSluiceError } from '../core/errors.ts';
import { createGateway } from '../http/gateway/createGateway.ts';
import type { Gateway, GatewayAddress } from '../http/gateway/createGateway.ts';
import { isLoopback, LOOPBACK_HOSTS } from '../http/gateway/hosts.ts';
import { createLivePage } from '../http/live/createLivePage.ts';
import type { Command, Terminal } from './Command.ts';
import { numberFlag, parseFlags, wrongFlag } from './flags.ts';
import { newKey } from './serve/newKey.ts';
import { clientSettings } from './serve/clientSettings.ts';
import { ServedClients } from './serve/ServedClients.ts';
import { ServedPolicy } from './serve/ServedPolicy.ts';
import { serveStore } from './serve/serveStore.ts';
import { serveTelemetry } from './serve/serveTelemetry.ts';

const help = `Usage: sluice serve [flags]
       sluice serve --new-key

Runs an OpenAI-compatible gateway under a policy until it is interrupted, then lets its calls come to their end.
On SIGHUP it takes the policy of the file anew; a wrong one changes nothing.
Clients come from the policy's \`clients\`, or from OPENAI_API_KEY and OPENAI_BASE_URL; a \`store\` with a \`url\` is Redis.

  --policy FILE    the policy, YAML or JSON (all defaults)
  --base-url URL   the provider, where the policy names no clients (OPENAI_BASE_URL, or OpenAI)
  --port N         port to listen on; 0 takes any that is free (8787)
  --host NAME      address to listen on (127.0.0.1)
  --drain MS       how long calls may go on after the interruption (10000)
  --heartbeat MS   sends a comment on a stream after so long without an event; 0 sends none (15000)
  --open-after MS  begins a stream after so long without content: then a failure has no status (off)
  --no-page        no live page at /
  --telemetry      starts OpenTelemetry: spans by OTLP, all metrics at /metrics
  --json           prints the address as JSON
  --new-key        prints a new key for clients and its hash for the policy`;

const FLAGS = {
  policy: { type: 'string' },
  'base-url': { type: 'string' },
  port: { type: 'string' },
  host: { type: 'string' },
  drain: { type: 'string' },
  heartbeat: { type: 'string' },
  'open-after': { type: 'string' },
  page: { type: 'boolean' },
  telemetry: { type: 'boolean' },
  json: { type: 'boolean' },
  'new-key': { type: 'boolean' },
} as const;

const DEFAULTS = { port: 8787, host: '127.0.0.1', drainMs: 10_000 };

/** `sluice serve`. */
export const serve: Command = {
  help,
  async run(args, terminal) {
    const { values } = parseFlags(args, FLAGS);
    if (values['new-key'] === true) return printKey(terminal);
    const port = numberFlag('port', values.port) ?? DEFAULTS.port;
    const { host = DEFAULTS.host } = values;
    const drainMs = numberFlag('drain', values.drain, zeroOrMore) ?? DEFAULTS.drainMs;
    const heartbeatMs = numberFlag('heartbeat', values.heartbeat, zeroOrMore);
    const openAfterMs = numberFlag('open-after', values['open-after'], zeroOrMore);
    const policy = policyOf(values.policy, terminal);
    if (policy === undefined) return 1;
    const surroundings = { baseURL: values['base-url'], env: process.env };
    const clients = new ServedClients(clientSettings(policy.current, surroundings));
    const telemetry = values.telemetry === true ? await serveTelemetry() : undefined;
    const warn = (message: string): void => terminal.complain(`sluice serve: ${message}`);
    const { url: storeURL } = policy.current.store;
    const shared = storeURL === undefined ? undefined : await serveStore(storeURL, warn);
    const interrupted = terminal.interrupted();

    const sluice = createSluice(clients.sources, policy.current, {
      telemetry: telemetry?.observer,
      store: shared?.store,
      warn,
    });
    telemetry?.observe(sluice);
    const page = values.page === false ? undefined : createLivePage(sluice);
    const gateway = createGateway(sluice, {
      hosts: hostsOf(policy, host),
      heartbeatMs: heartbeatMs === 0 ? Infinity : heartbeatMs,
      openAfterMs,
      metrics: telemetry?.metrics,
      page: page && ((request, response) => page.listener(request, response)),
    });
    const reload = (): void => {
      try {
        policy.reload((next) => {
          const change = clients.prepare(clientSettings(next, surroundings));
          sluice.reload(next);
          change();
        });
        warn(`took the policy of ${policy.path} anew`);
      } catch (error) {
        // Whatever it is, calls go on.
        warn(`the policy stays as it was: ${isSluiceError(error) ? error.message : String(error)}`);
      }
    };
    const stopReloads = policy.path === undefined ? undefined : terminal.onReload(reload);
    const close = async (): Promise<void> => {
      stopReloads?.();
      page?.close();
      await gateway.close({ drainMs });
      await sluice.close({ drainMs: 0 });
      shared?.close();
      await clients.close();
      await telemetry?.shutdown();
    };
    try {
      const address = await listening(gateway, { port, host });
      terminal.print(values.json === true ? JSON.stringify(address) : welcome(address, page !== undefined));
    } catch (error) {
      await close();
      throw error;
    }
    await interrupted;
    const { inFlight } = gateway;
    if (inFlight > 0) terminal.complain(`Letting ${inFlight} ${inFlight === 1 ? 'call' : 'calls'} come to an end`);
    await close();
    return 0;
  },
};

function printKey(terminal: Terminal): number {
  const { key, hash } = newKey();
  terminal.print(`key for clients:  ${key}`);
  terminal.print(`for the policy:   { hash: ${hash} }`);
  return 0;
}

/** A wrong policy is told in full. */
function policyOf(path: string | undefined, terminal: Terminal): ServedPolicy | undefined {
  try {
    return new ServedPolicy(path);
  } catch (error) {
    if (!isSluiceError(error) || error.code !== 'invalid_policy') throw error;
    terminal.complain(error.message);
    return undefined;
  }
}

/** While there are no keys, pages of others must not reach what only this machine does. */
function hostsOf(policy: ServedPolicy, host: string): () => readonly string[] | undefined {
  const local = host === 'localhost' || isLoopback(host) ? [...LOOPBACK_HOSTS, host] : undefined;
  return () => (policy.current.gateway.keys.length === 0 ? local : undefined);
}

/** An address that cannot be had is the command line's fault. */
async function listening(
  gateway: Gateway,
  where: { readonly port: number; readonly host: string },
): Promise<GatewayAddress> {
  try {
    return await gateway.listen(where);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'EADDRINUSE') throw wrongFlag(`port ${where.port} is taken`);
    if (code === 'EACCES') throw wrongFlag(`port ${where.port} needs rights that this process has not`);
    if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') throw wrongFlag('--host is no address of this machine');
    throw error;
  }
}

function welcome({ url, baseURL }: GatewayAddress, page: boolean): string {
  return [
    `Listening on ${url}`,
    `  base URL for OpenAI clients  ${baseURL}`,
    ...(page ? [`  live page                    ${url}/`] : []),
    `  metrics                      ${url}/metrics`,
  ].join('\n');
}

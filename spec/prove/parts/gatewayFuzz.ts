import { createHash } from 'node:crypto';
import { seededRandom } from '../../../lib/core/seededRandom.ts';
import { startEmulator } from '../../../lib/emulator/index.ts';
import { startGateway } from '../../helpers/gateways.ts';
import { heapInUse } from '../../helpers/heap.ts';
import { badRequest, KEY, SECRET, send } from './badRequests.ts';
import type { BadRequest } from './badRequests.ts';

export interface FuzzOptions {
  readonly requests: number;
  readonly seed: number;
  readonly concurrency: number;
}

export interface FuzzKind {
  readonly kind: string;
  requests: number;
  readonly statuses: Map<number, number>;
}

export interface FuzzReport {
  readonly kinds: readonly FuzzKind[];
  /** What was wrong with an answer, at most 20 of them. */
  readonly faults: readonly string[];
  readonly faultCount: number;
  /** Errors that nobody caught. */
  readonly uncaught: number;
  /** Calls that still run or wait once all is over. */
  readonly callsLeft: number;
  readonly socketsLeft: number;
  readonly heapGrowthBytes: number;
  /** Whether the gateway still answers a right request. */
  readonly alive: boolean;
}

/** Sends wrong requests to a gateway with a key, and judges every answer. */
export async function gatewayFuzz({ requests, seed, concurrency }: FuzzOptions): Promise<FuzzReport> {
  const emulator = await startEmulator({ firstTokenMs: 0, tokenMs: 0, tokens: 2 });
  const { url, gateway, sluice, ask, close } = await startGateway(emulator.baseURL, {
    policy: {
      models: { default: { retry: { attempts: 1 } } },
      gateway: { keys: [createHash('sha256').update(KEY).digest('hex')] },
    },
    maxBodyBytes: 64 * 1024,
    bodyMs: 2_000,
    listen: { headersMs: 2_000 },
  });
  const port = Number(new URL(url).port);
  let uncaught = 0;
  const onUncaught = (): void => void uncaught++;
  process.on('uncaughtException', onUncaught);
  const random = seededRandom(seed);
  const kinds = new Map<string, FuzzKind>();
  const faults: string[] = [];
  let faultCount = 0;
  let next = 0;
  let heapAfterWarmUp = 0;

  const judge = (bad: BadRequest, answer: string): void => {
    const kind = kinds.get(bad.kind) ?? { kind: bad.kind, requests: 0, statuses: new Map<number, number>() };
    kinds.set(bad.kind, kind);
    kind.requests++;
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1] ?? 0);
    kind.statuses.set(status, (kind.statuses.get(status) ?? 0) + 1);
    const fault = faultOf(bad, status, answer);
    if (fault === undefined) return;
    faultCount++;
    if (faults.length < 20) faults.push(`${bad.kind}: ${fault}`);
  };
  const worker = async (): Promise<void> => {
    while (next < requests) {
      const index = next++;
      const bad = badRequest(index, random);
      judge(bad, await send(port, bad));
      if (index === Math.floor(requests / 4)) heapAfterWarmUp = await heapInUse();
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  const heapGrowthBytes = (await heapInUse()) - heapAfterWarmUp;
  const body = { model: 'm', messages: [{ role: 'user', content: 'hello' }] };
  const alive = (await ask('/v1/chat/completions', body, { authorization: `Bearer ${KEY}` })).status === 200;
  const callsLeft = sluice.snapshot().calls;
  const socketsLeft = gateway.inFlight;
  process.off('uncaughtException', onUncaught);
  await close();
  await emulator.close();
  return { kinds: [...kinds.values()], faults, faultCount, uncaught, callsLeft, socketsLeft, heapGrowthBytes, alive };
}

function faultOf({ statuses }: BadRequest, status: number, answer: string): string | undefined {
  if (!statuses.includes(status)) return `status ${status}`;
  const [head = '', body = ''] = answer.split(/\r\n\r\n(.*)/s);
  if (/^x-evil:/im.test(head)) return 'a header of the client is in the answer';
  if (answer.includes(KEY) || (status !== 200 && answer.includes(SECRET))) return 'the answer tells what it must not';
  if (/\bat .*\.[tj]s:\d/.test(answer)) return 'the answer holds a stack';
  if (status === 200) return undefined;
  if (!/^content-type: application\/json/im.test(head)) return 'no JSON';
  return isError(body) ? undefined : 'the body is no error of OpenAI';
}

function isError(body: string): boolean {
  try {
    const { error } = JSON.parse(body) as { readonly error?: Readonly<Record<string, unknown>> };
    return typeof error?.['message'] === 'string' && typeof error['type'] === 'string' && 'code' in error;
  } catch {
    return false;
  }
}

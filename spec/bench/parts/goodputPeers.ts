import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { streamText } from 'ai';
import Bottleneck from 'bottleneck';
import { ExponentialBackoff, handleWhen, retry } from 'cockatiel';
import OpenAI from 'openai';
import PQueue from 'p-queue';
import { createSluice, systemRuntime } from '../../../lib/index.ts';
import { bareAsk, policyAsk, sluiceAsk } from '../../prove/parts/fullSpeed.ts';
import type { Ask, Provider } from '../../prove/parts/fullSpeed.ts';

/** A way to make the calls, set up for the provider's quota where it can be told of one. */
export interface Peer {
  readonly name: string;
  /** Made anew for each load. */
  ask(baseURL: string): Ask;
}

const client = (baseURL: string, maxRetries: number): OpenAI => new OpenAI({ baseURL, apiKey: 'none', maxRetries });

export function peersOf(provider: Provider): readonly Peer[] {
  const perSecond = provider.requestsPerMinute / 60;
  return [
    { name: 'Sluice, `createSluice`', ask: (baseURL) => policyOf(provider, baseURL) },
    {
      name: 'Sluice, `chat` and `throttleByBucket`',
      ask: (baseURL) => sluiceAsk(client(baseURL, 0), provider, systemRuntime),
    },
    ...[0, 2, 5].map((retries) => ({
      name: `SDK, ${retries} retries`,
      ask: (baseURL: string) => bareAsk(client(baseURL, retries)),
    })),
    {
      name: 'p-queue, `intervalCap` of a second',
      ask: (baseURL) => {
        const queue = new PQueue({ interval: 1000, intervalCap: perSecond });
        return through((work) => queue.add(work), bareAsk(client(baseURL, 2)));
      },
    },
    {
      name: 'Bottleneck, reservoir of a second',
      ask: (baseURL) => {
        const limiter = new Bottleneck({
          reservoir: perSecond,
          reservoirRefreshAmount: perSecond,
          reservoirRefreshInterval: 1000,
        });
        return through((work) => limiter.schedule(work), bareAsk(client(baseURL, 2)));
      },
    },
    {
      name: 'Bottleneck, `minTime`',
      ask: (baseURL) => {
        const limiter = new Bottleneck({ minTime: 1000 / perSecond });
        return through((work) => limiter.schedule(work), bareAsk(client(baseURL, 2)));
      },
    },
    {
      name: 'cockatiel, 5 retries with backoff',
      ask: (baseURL) => {
        const limited = (error: Error): boolean => (error as { status?: unknown }).status === 429;
        const policy = retry(handleWhen(limited), { maxAttempts: 5, backoff: new ExponentialBackoff() });
        return through((work) => policy.execute(work), bareAsk(client(baseURL, 0)));
      },
    },
    { name: 'AI SDK, `streamText`', ask: aiSdk },
  ];
}

function policyOf({ requestsPerMinute, burstRequests }: Provider, baseURL: string): Ask {
  const policy = { quota: { account: { requestsPerMinute, burstRequests } } };
  return policyAsk(createSluice(client(baseURL, 0), policy), systemRuntime);
}

function through(run: (work: () => Promise<void>) => Promise<unknown>, ask: Ask): Ask {
  return async (prompt, marks) => {
    await run(() => ask(prompt, marks));
  };
}

function aiSdk(baseURL: string): Ask {
  const vendor = createOpenAICompatible({ name: 'vendor', baseURL, apiKey: 'none' });
  return async (prompt, marks) => {
    let failure: unknown;
    const { fullStream } = streamText({
      model: vendor('gpt-5.5'),
      prompt,
      onError: ({ error }) => {
        failure = error;
      },
    });
    for await (const part of fullStream) if (part.type === 'text-delta') marks.content();
    if (failure !== undefined) throw failure;
  };
}

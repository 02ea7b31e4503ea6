// CPU time of decoding and reading a stream, against the SDK's own Stream on the same bodies. Run it with
// `npx node spec/bench/decode.ts`. What counts is the ratio: a machine's own speed cancels out.
import { Stream } from 'openai/core/streaming';
import type { ChatCompletionChunk } from 'openai/resources/chat/completions';
import { ChatReader } from '../../lib/wire/ChatReader.ts';
import { SseDecoder } from '../../lib/wire/SseDecoder.ts';

/** `short`: the chunk of OpenAI's reference. `long`: what its API adds to it today, of which parsing costs the most. */
type Shape = 'short' | 'long';

const HEAD = { id: 'chatcmpl-123', object: 'chat.completion.chunk', created: 1_694_268_190, model: 'gpt-5.5' };
const EXTRA = {
  short: { head: { system_fingerprint: 'fp_44709d6fcb' }, tail: {} },
  long: {
    head: {
      id: 'chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT',
      service_tier: 'default',
      system_fingerprint: 'fp_fc9f1d7035',
    },
    tail: { usage: null, obfuscation: 'Zq3wR8' },
  },
};

function bodyOf(shape: Shape, chunks: number): Uint8Array[] {
  const { head, tail } = EXTRA[shape];
  const frames: string[] = [];
  const frame = (delta: object, reason: string | null): string => {
    const choices = [{ index: 0, delta, logprobs: null, finish_reason: reason }];
    return `data: ${JSON.stringify({ ...HEAD, ...head, choices, ...tail })}\n\n`;
  };
  for (let at = 0; at < chunks - 1; at++) frames.push(frame({ content: ` word ${at}` }, null));
  frames.push(frame({}, 'stop'), 'data: [DONE]\n\n');
  return frames.map((text) => new TextEncoder().encode(text));
}

/** Each read comes by itself, as from a socket. */
function streamOf(reads: readonly Uint8Array[]): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream<Uint8Array>({
    pull(controller) {
      const read = reads[at++];
      if (read === undefined) controller.close();
      else controller.enqueue(read);
    },
  });
}

async function viaSdk(reads: readonly Uint8Array[]): Promise<number> {
  const stream = Stream.fromSSEResponse<ChatCompletionChunk>(new Response(streamOf(reads)), new AbortController());
  let length = 0;
  for await (const chunk of stream) length += chunk.choices[0]?.delta.content?.length ?? 0;
  return length;
}

async function viaWire(reads: readonly Uint8Array[]): Promise<number> {
  const reader = new ChatReader({ model: undefined, status: 200, requestId: undefined, choices: 1 });
  const decoder = new SseDecoder({
    event(data, event) {
      if (data === '[DONE]') reader.readDone();
      else reader.read(JSON.parse(data), event);
    },
    comment() {},
  });
  const body = new Response(streamOf(reads)).body!.getReader();
  for (;;) {
    const { done, value } = await body.read();
    if (done) break;
    decoder.push(value);
  }
  decoder.end();
  return reader.partial().text.length;
}

/** What neither can do without: reading the body and parsing the JSON. */
async function viaParseAlone(reads: readonly Uint8Array[], texts: readonly string[]): Promise<number> {
  const body = new Response(streamOf(reads)).body!.getReader();
  while (!(await body.read()).done) continue;
  let length = 0;
  for (const text of texts) length += (JSON.parse(text) as ChatCompletionChunk).choices[0]?.delta.content?.length ?? 0;
  return length;
}

async function cpuUs(run: () => Promise<number>, times: number): Promise<number> {
  const before = process.cpuUsage();
  for (let at = 0; at < times; at++) await run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / times;
}

const median = (values: number[]): number => values.sort((a, b) => a - b)[values.length >> 1]!;

console.log('| chunk | chunks | reads | SDK us | Sluice us | ratio | reading and JSON alone |');
console.log('| --- | ---: | --- | ---: | ---: | ---: | ---: |');
for (const shape of ['short', 'long'] as const) {
  for (const chunks of [10, 100, 1_000]) {
    const many = bodyOf(shape, chunks);
    const texts = many.slice(0, -1).map((bytes) => new TextDecoder().decode(bytes).slice('data: '.length, -2));
    for (const [name, reads] of [['many', many] as const, ['one', [Buffer.concat(many)]] as const]) {
      const ways = [() => viaSdk(reads), () => viaWire(reads), () => viaParseAlone(reads, texts)];
      const lengths = new Set(await Promise.all(ways.map((way) => way())));
      if (lengths.size !== 1) throw new Error('all must read the same text');
      const times = Math.max(10, Math.floor(10_000 / chunks));
      const rounds: number[][] = [];
      // Taken in turns, so that a busy neighbour slows all of them.
      for (let round = 0; round < 9; round++) {
        const row: number[] = [];
        for (const way of ways) row.push(await cpuUs(way, times));
        rounds.push(row);
      }
      const [sdk, own, floor] = ways.map((_, at) => median(rounds.map((row) => row[at]!))) as [number, number, number];
      const shares = [own, floor].map((us) => (us / sdk).toFixed(2));
      console.log(
        `| ${shape} | ${chunks} | ${name} | ${sdk.toFixed(0)} | ${own.toFixed(0)} | ${shares[0]} | ${shares[1]} |`,
      );
    }
  }
}

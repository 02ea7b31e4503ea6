// CPU time of decoding and reading a stream, against the SDK's own Stream on the same bodies. Run it with
// `npx node spec/bench/decode.ts`. What counts is the ratio: a machine's own speed cancels out.
import { Stream } from 'openai/core/streaming';
import type { ChatCompletionChunk } from 'openai/resources/chat/completions';
import { ChatReader } from '../../lib/wire/ChatReader.ts';
import { SseDecoder } from '../../lib/wire/SseDecoder.ts';

function bodyOf(chunks: number): Uint8Array[] {
  const frames: string[] = [];
  const head = {
    id: 'chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT',
    object: 'chat.completion.chunk',
    created: 1_741_569_952,
  };
  const frame = (delta: object, finishReason: string | null): string =>
    `data: ${JSON.stringify({ ...head, model: 'gpt-5.5', service_tier: 'default', system_fingerprint: 'fp_fc9f1d7035', choices: [{ index: 0, delta, logprobs: null, finish_reason: finishReason }], usage: null, obfuscation: 'Zq3wR8' })}\n\n`;
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

async function cpuUs(run: () => Promise<number>, times: number): Promise<number> {
  const before = process.cpuUsage();
  for (let at = 0; at < times; at++) await run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / times;
}

const median = (values: number[]): number => values.sort((a, b) => a - b)[values.length >> 1]!;

console.log('| chunks | reads | SDK us | Sluice us | ratio |\n| ---: | --- | ---: | ---: | ---: |');
for (const chunks of [10, 100, 1_000]) {
  const many = bodyOf(chunks);
  for (const [name, reads] of [['many', many] as const, ['one', [Buffer.concat(many)]] as const]) {
    if ((await viaSdk(reads)) !== (await viaWire(reads))) throw new Error('both must read the same text');
    const times = Math.max(20, Math.floor(20_000 / chunks));
    const rounds: [number, number][] = [];
    // Taken in turns, so that a busy neighbour slows both.
    for (let round = 0; round < 7; round++) {
      rounds.push([await cpuUs(() => viaSdk(reads), times), await cpuUs(() => viaWire(reads), times)]);
    }
    const sdk = median(rounds.map(([us]) => us));
    const own = median(rounds.map(([, us]) => us));
    console.log(`| ${chunks} | ${name} | ${sdk.toFixed(0)} | ${own.toFixed(0)} | ${(own / sdk).toFixed(2)} |`);
  }
}

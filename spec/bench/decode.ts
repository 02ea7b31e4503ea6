// CPU time of decoding and reading a stream, against the SDK's own Stream on the same bodies. What counts is the ratio: a
// machine's own speed cancels out.
import { Stream } from 'openai/core/streaming';
import type { ChatCompletionChunk } from 'openai/resources/chat/completions';
import type { WireEvent } from '../../lib/core/attempt.ts';
import { systemRuntime } from '../../lib/core/runtime.ts';
import { AnswerDecoder } from '../../lib/sources/AnswerDecoder.ts';
import { ChatReader } from '../../lib/wire/ChatReader.ts';
import { writeResults } from '../prove/parts/writeResults.ts';
import { chatReads, streamOf } from './parts/chatReads.ts';
import { cpuRounds, median } from './parts/cpu.ts';

async function viaSdk(reads: readonly Uint8Array[]): Promise<number> {
  const stream = Stream.fromSSEResponse<ChatCompletionChunk>(new Response(streamOf(reads)), new AbortController());
  let length = 0;
  for await (const chunk of stream) length += chunk.choices[0]?.delta.content?.length ?? 0;
  return length;
}

async function viaSource(reads: readonly Uint8Array[]): Promise<number> {
  const about = { model: undefined, status: 200, requestId: undefined };
  const reader = new ChatReader({ ...about, choices: 1 });
  let chunks = 0;
  const next = (event: WireEvent): void => {
    if (event.kind === 'done') reader.readDone();
    if (event.kind !== 'data') return;
    if (event.added === undefined) reader.read(event.value, event.event);
    else reader.readText(event.added);
    // Every chunk is made, as for a consumer.
    if (event.value !== undefined) chunks++;
  };
  const options = { maxBytes: 1e9, about, headers: new Headers(), runtime: systemRuntime };
  const decoder = new AnswerDecoder({ api: 'chat', stream: true }, { next }, options);
  const body = new Response(streamOf(reads)).body!.getReader();
  for (;;) {
    const { done, value } = await body.read();
    if (done) break;
    decoder.push(value);
  }
  decoder.end();
  return chunks === 0 ? 0 : reader.partial().text.length;
}

/** What neither can do without: reading the body and parsing the JSON. */
async function viaParseAlone(reads: readonly Uint8Array[], texts: readonly string[]): Promise<number> {
  const body = new Response(streamOf(reads)).body!.getReader();
  while (!(await body.read()).done) continue;
  let length = 0;
  for (const text of texts) length += (JSON.parse(text) as ChatCompletionChunk).choices[0]?.delta.content?.length ?? 0;
  return length;
}

const ROUNDS = 15;

const rows: (string | number)[][] = [];
const measured: { readonly chunks: number; readonly ratio: number }[] = [];
for (const shape of ['short', 'long'] as const) {
  for (const chunks of [10, 100, 1_000]) {
    const many = chatReads({ shape, chunks, usage: false });
    const texts = many.slice(0, -1).map((bytes) => new TextDecoder().decode(bytes).slice('data: '.length, -2));
    for (const [name, reads] of [['many', many] as const, ['one', [Buffer.concat(many)]] as const]) {
      const ways = {
        sdk: () => viaSdk(reads),
        own: () => viaSource(reads),
        floor: () => viaParseAlone(reads, texts),
      };
      const lengths = new Set(await Promise.all(Object.values(ways).map((way) => way())));
      if (lengths.size !== 1) throw new Error('all must read the same text');
      const rounds = await cpuRounds(ways, { times: Math.max(10, Math.floor(10_000 / chunks)), rounds: ROUNDS });
      const [sdk, own, floor] = (['sdk', 'own', 'floor'] as const).map((way) =>
        median(rounds.map((row) => row[way])),
      ) as [number, number, number];
      const ratio = median(rounds.map((row) => row.own / row.sdk));
      measured.push({ chunks, ratio });
      rows.push([shape, chunks, name, sdk.toFixed(0), own.toFixed(0), ratio.toFixed(2), (floor / sdk).toFixed(2)]);
    }
  }
}
const long = measured.filter(({ chunks }) => chunks >= 100);
const within = long.filter(({ ratio }) => ratio <= 1 / 3).length;

await writeResults({
  name: 'decode',
  script: 'bench',
  title: 'Decoding a stream',
  text: `
CPU time in microseconds of reading one streamed chat answer to its end: the SDK's own \`Stream\` against the decoder and the reader
of chunks that every source here uses, on the same bodies in the same process, in turns. *Reads*: each event in a read of its own, as
from a socket, or the whole body in one. *Ratio*: the median over ${ROUNDS} rounds of Sluice to SDK. *Floor*: reading the body and
\`JSON.parse\` alone, to the SDK; only what does not parse every chunk can go below it. *Short* chunks are those of OpenAI's reference,
*long* ones have the fields that its API adds today.

The goal is a third at 100 chunks and more: ${within} of ${long.length} bodies reach it here.`,
  rows: [['chunk', 'chunks', 'reads', 'SDK us', 'Sluice us', 'ratio', 'floor'], ...rows],
  claims: [
    ['less CPU time than the SDK on every body', measured.every(({ ratio }) => ratio < 1)],
    ['at most 0.4 of it at 100 chunks and more', long.every(({ ratio }) => ratio <= 0.4)],
  ],
});

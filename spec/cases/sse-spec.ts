import { expect } from 'chai';
import { casesOf } from '../helpers/cases.ts';
import { cut, readSse } from '../helpers/readSse.ts';
import { UNFIT } from './unfit.ts';

interface SseInput {
  readonly chunks: readonly (string | { readonly hex: string } | { readonly repeat: string; readonly times: number })[];
}

interface SseExpect {
  readonly text?: string;
  readonly reasoning?: string;
  readonly events?: number;
  readonly finish_reason?: string | null;
  readonly result?: string;
  readonly tool_calls?: readonly { readonly id: string; readonly name: string; readonly arguments: string }[];
  readonly usage?: { readonly total_tokens: number };
  readonly contains_replacement_char?: boolean;
  readonly first_token_at?: string;
}

function bytesOf(chunk: SseInput['chunks'][number]): Uint8Array {
  if (typeof chunk === 'string') return Buffer.from(chunk, 'utf8');
  return 'hex' in chunk ? Buffer.from(chunk.hex, 'hex') : Buffer.from(chunk.repeat.repeat(chunk.times), 'utf8');
}

describe('public reports of form sse', () => {
  for (const { id, symptom, input, expect: expected } of casesOf<SseInput, SseExpect>('sse')) {
    const unfit = UNFIT[id];
    if (unfit !== undefined) {
      it.skip(`${id}: ${unfit}`);
      continue;
    }
    const reads = input.chunks.map(bytesOf);
    const whole = Buffer.concat(reads);
    const splits: readonly (readonly [string, () => Iterable<Uint8Array>])[] = [
      ['as reported', () => reads],
      ['in one read', () => [whole]],
      ['byte by byte', () => cut(whole, 1)],
      ['in threes', () => cut(whole, 3)],
    ];
    for (const [how, split] of splits) {
      it(`${id} ${how}: ${expected.must} [${symptom}]`, () => {
        const { events, answer, reader, error, verdicts } = readSse(split());

        if (expected.text !== undefined) expect(answer.text).to.equal(expected.text);
        if (expected.reasoning !== undefined) expect(answer.reasoning).to.equal(expected.reasoning);
        if (expected.events !== undefined) expect(events).to.equal(expected.events);
        if (expected.finish_reason !== undefined) expect(answer.finishReason).to.equal(expected.finish_reason);
        if (expected.usage !== undefined) expect(answer.usage?.totalTokens).to.equal(expected.usage.total_tokens);
        if (expected.contains_replacement_char === false) expect(answer.text).to.not.include('\ufffd');
        if (expected.tool_calls !== undefined) {
          const calls = answer.toolCalls.map(({ id: callId, name, arguments: args }) => ({
            id: callId,
            name,
            arguments: args,
          }));
          expect(calls).to.deep.equal(expected.tool_calls);
        }
        if (expected.first_token_at !== undefined) {
          expect(`chunk ${verdicts.indexOf('content') + 1}`).to.equal(expected.first_token_at);
        }
        if ('counts_as_output' in expected) expect(verdicts[0]).to.equal('content');
        expect(error).to.equal(undefined);
        expect(reader.complete).to.equal(true);
      });
    }
  }
});

import { expect } from 'chai';
import { AnswerAssembler } from '../../lib/wire/AnswerAssembler.ts';
import { cut, decode, utf8 } from '../helpers/readSse.ts';

const delta = (fields: object): object => ({ choices: [{ index: 0, delta: fields }] });

// Apart from the specs of what they measure: these would be run for every change that is tried on it.

describe('SseDecoder', () => {
  it('takes time in proportion to the input, in one read or byte by byte', () => {
    const cpuUs = (bytes: Uint8Array, size: number): number => {
      let best = Infinity;
      for (let round = 0; round < 2; round++) {
        const before = process.cpuUsage();
        decode(cut(bytes, size));
        const { user, system } = process.cpuUsage(before);
        best = Math.min(best, user + system);
      }
      return best;
    };
    // One event, tiny lines, and lines that mean nothing; a quadratic decoder is 16 times slower, or more, on the longer.
    for (const frame of ['y', 'data: 1\n\n', 'x\n', '\r', ':\r\n']) {
      const bytesOf = (length: number): Uint8Array => utf8('data: ' + frame.repeat(length / frame.length));
      for (const size of [1, 1 << 20]) {
        const length = size === 1 ? 4_096 : 65_536;
        const [short, long] = [cpuUs(bytesOf(length), size), cpuUs(bytesOf(8 * length), size)];
        expect(long, `${JSON.stringify(frame)} in reads of ${size}`).to.be.below(24 * Math.max(short, 1_000));
      }
    }
  });
});

describe('AnswerAssembler', () => {
  it('takes time in proportion to the chunks, with a snapshot after each', () => {
    const cpuUs = (chunks: number): number => {
      const assembler = new AnswerAssembler();
      for (let at = 0; at < 20; at++) {
        const call = { index: at, id: `t${at}`, function: { name: 'f', arguments: 'x'.repeat(10_000) } };
        assembler.addChat(delta({ tool_calls: [call] }));
      }
      const before = process.cpuUsage().user;
      for (let at = 0; at < chunks; at++) {
        assembler.addChat(delta({ content: 'word ' }));
        assembler.snapshot();
      }
      return process.cpuUsage().user - before;
    };
    const best = (chunks: number): number => Math.min(...[1, 2, 3].map(() => cpuUs(chunks)));
    const short = Math.max(best(2_000), 2_000);
    expect(best(16_000)).to.be.below(24 * short);
  });
});

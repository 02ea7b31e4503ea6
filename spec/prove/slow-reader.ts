import OpenAI from 'openai';
import { startEmulator } from '../../lib/emulator/index.ts';
import { demanding, looping, readSlowly } from './parts/slowReader.ts';
import type { SlowReading } from './parts/slowReader.ts';
import { writeResults } from './parts/writeResults.ts';

const BYTES = 200_000_000;
const emulator = await startEmulator();
const openai = new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none' });
const results: [string, SlowReading][] = [];
for (const [name, reader] of [
  ['`for await` over `toAsyncIterable`, 8 values held', looping],
  ['`demand` by hand, 8 values held', demanding],
] as const) {
  const read = await readSlowly(reader, openai, emulator, BYTES);
  if (read.failure !== undefined) console.log(read.failure);
  results.push([name, read]);
}
await emulator.close();

const mb = (bytes: number): string => (bytes / 1e6).toFixed(1);
await writeResults({
  name: 'slow-reader',
  title: 'A consumer that stops reading',
  text: `
One answer of 200 MB in numbered pieces of 64 KiB. The consumer takes ten of them, stops for at least a second (four times the \`idleMs\` of the
call), and then takes the rest. *Written* is what the emulator had handed over when it could write no more: what was
taken, what the consumer holds, and the buffers of both ends' sockets, whose size is up to the system.`,
  rows: [
    ['consumer', 'body, MB', 'taken, MB', 'written, MB', 'pieces in the end', 'missing or wrong'],
    ...results.map(([name, read]) => [
      name,
      mb(read.bodyBytes),
      mb(read.takenBytes),
      mb(read.writtenBytes),
      read.pieces,
      Math.ceil(BYTES / 65_536) - read.pieces + read.wrong,
    ]),
  ],
  claims: [
    ['at most 16 MB were read ahead or lay in sockets', results.every(([, { writtenBytes }]) => writtenBytes < 16e6)],
    [
      'nothing was lost, and time that the consumer took did not count',
      results.every(
        ([, read]) => read.wrong === 0 && read.pieces === Math.ceil(BYTES / 65_536) && read.failure === undefined,
      ),
    ],
  ],
});

import { gatewayFuzz } from './parts/gatewayFuzz.ts';
import { writeResults } from './parts/writeResults.ts';

const REQUESTS = 20_000;
const startMs = performance.now();
const report = await gatewayFuzz({ requests: REQUESTS, seed: 20_000, concurrency: 32 });
const seconds = Math.round((performance.now() - startMs) / 1_000);

const rows = report.kinds
  .toSorted((a, b) => a.kind.localeCompare(b.kind))
  .map(({ kind, requests, statuses }) => [
    kind,
    String(requests),
    [...statuses]
      .sort(([a], [b]) => a - b)
      .map(([status, count]) => `${status} (${count})`)
      .join(', '),
  ]);

await writeResults({
  name: 'gateway-fuzz',
  title: 'What a gateway answers to wrong requests',
  text: `
${REQUESTS.toLocaleString('en')} requests, made at random from a fixed seed, each over a connection of its own and 32 at a time, to a gateway that asks for a key; ${seconds} s.
Each answer is judged: a status that is right for its kind, JSON in the shape of OpenAI's errors, no key, no word of the request, no stack, no header that the client wrote.
*Odd values* are JSON that only a provider can judge; *header injection* has values that are allowed once they are taken as text.${
    report.faults.length > 0 ? `\n\nFaults: ${report.faults.join('; ')}.` : ''
  }`,
  rows: [['kind', 'requests', 'statuses'], ...rows],
  claims: [
    ['every answer is right', report.faultCount === 0],
    ['no error was left uncaught', report.uncaught === 0],
    ['no call, and no request, is left', report.callsLeft === 0 && report.socketsLeft === 0],
    [
      'what is in use of the heap has not grown by more than 10 MB since a quarter of them',
      report.heapGrowthBytes < 10e6,
    ],
    ['the gateway still answers a right request', report.alive],
  ],
});

import OpenAI from 'openai';
import { systemRuntime } from '../../lib/index.ts';
import { startEmulatorProcess } from './parts/emulatorProcess.ts';
import { forgetAnswered, forgetSilent, talk, talkative } from './parts/conversations.ts';
import { ms, writeResults } from './parts/writeResults.ts';

const emulator = await startEmulatorProcess(talkative);
const openai = new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none' });
const talks = await talk(openai, emulator, systemRuntime, 100, 12);
await emulator.close();

const plain = await startEmulatorProcess({ firstTokenMs: 1, tokens: 1, maxRecords: 1 });
const answered = await forgetAnswered(new OpenAI({ baseURL: plain.baseURL, apiKey: 'none' }), 10_000);
await plain.close();
const silent = await forgetSilent(100_000);

const { turns } = talks;
await writeResults({
  name: 'conversations',
  title: 'Turns of a conversation',
  text: `
100 conversations of 12 turns, all asked for at once, each turn with retries (one request in ten fails). Of every four turns one is cancelled
in mid-stream, and one before its turn has come. What overlaps is judged by the emulator, a process of its own. It
sees that a connection was closed a little after it was: a request that the next turn sends meanwhile overtakes that, and is listed apart.

Then one answered turn in each of 10,000 further conversations, and one turn without a provider in each of 100,000 by \`inConversation\` and by
\`concatByConversation\`: the heap is compared after a garbage collection.`,
  rows: [
    ['what', 'result'],
    ['turns answered', turns.answered],
    ['turns cancelled', turns.cancelled],
    ['turns failed', turns.failed],
    ['most requests at once, all conversations', talks.mostInAll],
    ['requests that overlapped another of their conversation', talks.overlaps],
    ['requests that overtook the close of a connection left before', talks.overtaken],
    ['by at most', ms(talks.overtakenByMs)],
    ['conversations whose requests arrived in order', talks.inOrder],
    ['requests of turns that were cancelled before they began', talks.sentThough],
    ['turns sent in the tick in which the one before them was cancelled', `${talks.sentAtOnce} of 300`],
    ['conversations remembered at the end', talks.remembered + answered.remembered + silent.remembered],
    ['growth of the heap by 10,000 answered conversations, MB', (answered.heapGrowth / 1e6).toFixed(2)],
    ['growth of the heap by 200,000 silent conversations, MB', (silent.heapGrowth / 1e6).toFixed(2)],
  ],
  claims: [
    ['no two calls of a conversation overlapped', talks.overlaps === 0],
    ['the emulator saw a closed connection within 50 ms', talks.overtakenByMs <= 50],
    [
      'turns kept their order, and none was sent that had been cancelled',
      talks.inOrder === 100 && talks.sentThough === 0,
    ],
    ['the turn after a cancelled one was sent in the same tick', talks.sentAtOnce === 300],
    [
      'no turn failed, and no conversation was remembered',
      turns.failed === 0 && talks.remembered + answered.remembered + silent.remembered === 0,
    ],
    ['idle conversations leave less than 200 bytes each', answered.heapGrowth < 2e6 && silent.heapGrowth < 2e6],
  ],
});

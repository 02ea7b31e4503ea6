// Serves a chat page to the browser: answers stream, stop, and go on after a broken connection without a second bill.

import OpenAI from 'openai';
import { startEmulator } from 'sluice/emulator';
import { startChatServer } from './chatServer.ts';

const emulator = await startEmulator({ firstTokenMs: 300, tokenMs: 25, tokens: 160 });
const openai = new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none' });
const chat = await startChatServer(openai, Number(process.env['PORT'] ?? 8080));
console.log(`Open ${chat.url} in a browser. Ctrl-C ends this.`);

process.once('SIGINT', () => {
  void Promise.all([chat.close(), emulator.close()]).then(() => {
    const { requests, aborts } = emulator.report();
    console.log(`The provider was asked ${requests} times, and left in mid-answer ${aborts} times.`);
  });
});

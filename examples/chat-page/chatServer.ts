import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import type OpenAI from 'openai';
import type { ChatCompletionMessageParam } from 'openai/resources/chat/completions';
import { createSluice } from 'sluice';
import { pipeToResponse, replayable } from 'sluice/http';

export interface ChatServer {
  readonly url: string;
  readonly server: Server;
  close(): Promise<void>;
}

const FILES: Readonly<Record<string, readonly [file: string, type: string]>> = {
  '/': ['page.html', 'text/html'],
  '/page.css': ['page.css', 'text/css'],
  '/page.js': ['page.js', 'text/javascript'],
  '/readAnswer.js': ['readAnswer.js', 'text/javascript'],
};

/** The page, and the answers that it asks for: `POST /answers/<turn>` begins one or goes on with it, `DELETE` stops it. */
export async function startChatServer(openai: OpenAI, port = 0): Promise<ChatServer> {
  const sluice = createSluice(openai, {
    preset: 'interactive',
    models: { 'gpt-5.5': { breaker: { consecutiveFailures: 5 } } },
  });
  const answers = replayable({ keepMs: 30_000 });

  async function answer(turn: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const messages = messagesOf(await json(request).catch(() => undefined));
    if (messages === undefined) {
      response.writeHead(400).end();
      return;
    }
    // The page names each turn, so that one which comes back is not asked again. Behind a login, pass `owner` as well.
    answers
      .open({ key: turn, lastEventId: request.headers['last-event-id'] }, () =>
        sluice.chat({ model: 'gpt-5.5', messages }),
      )
      .pipe(pipeToResponse(response))
      .subscribe();
  }

  const server = createServer((request, response) => {
    const path = request.url ?? '/';
    const [, turn] = /^\/answers\/([\w-]{8,64})$/.exec(path) ?? [];
    if (turn !== undefined && request.method === 'POST') {
      void answer(turn, request, response);
    } else if (turn !== undefined && request.method === 'DELETE') {
      response.writeHead(answers.stop({ key: turn }) ? 204 : 404).end();
    } else {
      sendFile(path, response);
    }
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    server,
    async close() {
      answers.close();
      server.close();
      server.closeAllConnections();
      await sluice.close({ drainMs: 0 });
    },
  };
}

/** What a browser may send: turns of two speakers, of some length, and no instructions. */
function messagesOf(body: unknown): ChatCompletionMessageParam[] | undefined {
  if (!Array.isArray(body) || body.length > 100) return undefined;
  const messages = body.map((message: { readonly role?: unknown; readonly content?: unknown } | null) => ({
    role: message?.role === 'assistant' ? ('assistant' as const) : ('user' as const),
    content: typeof message?.content === 'string' ? message.content.slice(0, 20_000) : '',
  }));
  return messages.at(-1)?.role === 'user' ? messages : undefined;
}

function sendFile(path: string, response: ServerResponse): void {
  const [file, type] = FILES[path] ?? [];
  if (file === undefined) {
    response.writeHead(404).end();
    return;
  }
  response.writeHead(200, {
    'content-type': `${type}; charset=utf-8`,
    'content-security-policy':
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    'cache-control': 'no-cache',
  });
  response.end(readFileSync(new URL(file, import.meta.url)));
}

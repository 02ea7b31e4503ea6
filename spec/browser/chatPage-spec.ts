import { expect } from 'chai';
import OpenAI from 'openai';
import type { Page } from 'playwright-core';
import type { ChatServer } from '../../examples/chat-page/chatServer.ts';
import { startEmulator } from '../../lib/emulator/index.ts';
import type { Emulator } from '../../lib/emulator/index.ts';
import { builtDist } from '../helpers/builtDist.ts';
import { describeInChromium, picture, until } from '../helpers/chromium.ts';
import type { Visit } from '../helpers/chromium.ts';
import { sideBySide } from '../helpers/sideBySide.ts';

const TOKENS = 120;

/** A page of its own, and the servers behind it. */
interface Chat {
  readonly emulator: Emulator;
  readonly server: ChatServer['server'];
  readonly page: Page;
  readonly complaints: readonly string[];
  ask(text: string): Promise<void>;
  /** Asks for a story, until some of it is there. */
  begin(): Promise<void>;
  /** The last answer. */
  written(): Promise<string>;
  someWritten(length: number): Promise<void>;
  ended(): Promise<void>;
}

/** What the provider sends, in whole. */
async function wholeAnswer(): Promise<string> {
  const other = await startEmulator({ firstTokenMs: 0, tokenMs: 0, tokens: TOKENS });
  const openai = new OpenAI({ baseURL: other.baseURL, apiKey: 'none' });
  const messages = [{ role: 'user' as const, content: 'Tell me a story' }];
  const { choices } = await openai.chat.completions.create({ model: 'gpt-5.5', messages });
  await other.close();
  return choices[0]?.message.content ?? '';
}

describeInChromium('examples/chat-page, in Chromium', (browser) => {
  const play = sideBySide(3);
  before(builtDist);

  const test = (title: string, inIt: (chat: Chat) => Promise<void>): void => {
    play(title, async () => {
      const emulator = await startEmulator({ firstTokenMs: 50, tokenMs: 20, tokens: TOKENS });
      // Not before dist/ is there: the example uses the package as its readers do.
      const { startChatServer } = await import('../../examples/chat-page/chatServer.ts');
      const chat = await startChatServer(new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none' }));
      const inPage = ({ page, complaints }: Visit): Promise<void> => {
        const ask: Chat['ask'] = async (text) => {
          await page.getByRole('textbox', { name: 'Message' }).fill(text);
          await page.keyboard.press('Enter');
        };
        const someWritten: Chat['someWritten'] = (length) =>
          until(page, `document.querySelector('.assistant:last-child')?.textContent.length > ${length}`);
        return inIt({
          emulator,
          server: chat.server,
          page,
          complaints,
          ask,
          async begin() {
            await ask('Tell me a story');
            await someWritten(20);
          },
          written: () => page.locator('.assistant').last().innerText(),
          someWritten,
          ended: () => until(page, "document.querySelector('#stop').hidden && !document.querySelector('.writing')"),
        });
      };
      try {
        await browser.visit(chat.url, inPage, { viewport: { width: 900, height: 640 } });
      } finally {
        await chat.close();
        await emulator.close();
      }
    });
  };

  test('streams', async ({ emulator, page, complaints, begin, ask, written, ended }) => {
    await begin();
    const begun = await written();
    expect(await page.locator('.writing').count()).to.equal(1);
    await picture(page, 'chat-page');
    await ended();
    expect((await written()).length).to.be.above(begun.length);
    expect(await written()).to.equal((await wholeAnswer()).trim());
    await ask('And another');
    await ended();
    expect(await page.locator('.assistant').count()).to.equal(2);
    expect(emulator.report().requests).to.equal(2);
    expect(complaints).to.deep.equal([]);
  });

  test('stops: the request to the provider is aborted, and what came stays', async (chat) => {
    const { emulator, page, begin, ask, written, ended } = chat;
    emulator.script([{ kind: 'stall', after: 20, times: 1 }]);
    await begin();
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByText('Stopped.').waitFor();
    await ended();
    const { aborts, answered } = emulator.report();
    expect({ aborts, answered }).to.deep.equal({ aborts: 1, answered: 0 });
    const stopped = await written();
    expect(stopped.length).to.be.within(20, (await wholeAnswer()).length - 1);
    await ask('Go on');
    await ended();
    expect(await page.locator('.assistant').count()).to.equal(2);
    expect(await page.locator('.assistant').first().innerText()).to.equal(stopped);
  });

  test('goes on after its connection broke, twice, without a second bill', async (chat) => {
    const { emulator, server, begin, written, someWritten, ended } = chat;
    await begin();
    server.closeAllConnections();
    await someWritten(120);
    server.closeAllConnections();
    await ended();
    expect(await written()).to.equal((await wholeAnswer()).trim());
    const { requests, answered, aborts } = emulator.report();
    expect({ requests, answered, aborts }).to.deep.equal({ requests: 1, answered: 1, aborts: 0 });
  });

  test('goes on after the page was loaded again in mid-answer, without a second bill', async (chat) => {
    const { emulator, page, begin, written, someWritten, ended } = chat;
    await begin();
    await page.reload();
    await someWritten(20);
    await ended();
    expect(await page.locator('.user').allInnerTexts()).to.deep.equal(['Tell me a story']);
    expect(await written()).to.equal((await wholeAnswer()).trim());
    expect(emulator.report().requests).to.equal(1);
  });

  test('says why there is no answer', async ({ emulator, page, ask, ended }) => {
    emulator.script([{ kind: 'error', error: 'bad_request', times: 'always' }]);
    await ask('Tell me a story');
    await page.getByText(/^No answer: /).waitFor();
    await ended();
    expect(await page.locator('.assistant').count()).to.equal(0);
  });
});

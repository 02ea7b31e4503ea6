import { expect } from 'chai';
import type { BrowserContextOptions, Page } from 'playwright-core';
import type { LiveSource } from '../../lib/http/live/LiveSource.ts';
import { describeInChromium, picture, takesPictures, until } from '../helpers/chromium.ts';
import type { Visit } from '../helpers/chromium.ts';
import { sideBySide } from '../helpers/sideBySide.ts';
import { eventOf, FakeSource, snapshotOf } from '../http/live/parts.ts';
import { busyLoad } from './busyLoad.ts';
import { ask, startLive, traffic } from './liveServer.ts';
import type { Live } from './liveServer.ts';

const breakerOf = (page: Page) => page.locator('#models tr', { hasText: 'gpt-5.5' }).first().locator('.breaker .pill');

describeInChromium('the live page, in Chromium', (browser) => {
  // Pictures are of a page that has the machine to itself.
  const play = sideBySide(takesPictures ? 1 : 3);

  /** In a page of its own, once it is live. */
  async function inPage(
    look: (seen: Visit & Live) => Promise<void>,
    options?: BrowserContextOptions,
    other?: LiveSource,
  ): Promise<void> {
    const live = await startLive(other);
    const liveAndLook = async (visit: Visit): Promise<void> => {
      await visit.page.locator('#link[data-state=live]').waitFor();
      await look({ ...live, ...visit });
    };
    try {
      await browser.visit(live.url, liveAndLook, options);
    } finally {
      await live.close();
    }
  }
  const test = (title: string, look: (seen: Visit & Live) => Promise<void>, options?: BrowserContextOptions): void =>
    void play(title, () => inPage(look, options));

  test(
    'can be read when nothing has happened yet',
    async ({ page, complaints }) => {
      expect(await page.title()).to.equal('Support assistant, live');
      expect(await page.locator('#models tbody th').allTextContents()).to.have.members([
        'gpt-5.5',
        'gpt-5.5-mini',
        'deepseek-v3.2',
      ]);
      await page.getByText('No call has ended since').waitFor();
      await page.getByText('Nobody waits, and nothing is in flight.').waitFor();
      await page.getByText('No breaker, limit or pause has changed').waitFor();
      expect(await page.locator('#tiles').innerText()).not.to.match(/NaN|undefined|null|Infinity/);
      await picture(page, 'live-page-empty');
      expect(complaints).to.deep.equal([]);
    },
    { colorScheme: 'dark' },
  );

  test(
    'shows a breaker opening and closing under a fault of the provider',
    async ({ page, complaints, emulator, sluice }) => {
      const stop = traffic(sluice, 40);
      try {
        await page.locator('#calls tbody tr').nth(5).waitFor();
        if (takesPictures) await page.waitForTimeout(40_000);

        emulator.script([
          { kind: 'error', error: 'requests', retryAfterMs: 600, model: 'gpt-5.5-mini', times: 4 },
          { kind: 'error', error: 'overloaded', model: 'gpt-5.5', times: 'always' },
        ]);
        await page.getByText('Breaker open: gpt-5.5').waitFor();
        await page.locator('#changes').getByText('gpt-5.5 (consecutive failures)').waitFor();
        if (takesPictures) await page.waitForTimeout(8_000);
        await page.locator('input[name=which][value=troubled]').check({ force: true });
        await page.locator('#calls .pill').first().waitFor();
        await page.locator('#alarm:visible').waitFor();
        await picture(page, 'live-page-dark');
        await page.locator('input[name=which][value=all]').check({ force: true });

        emulator.script([]);
        await until(page, "document.querySelector('#alarm').hidden");
        await breakerOf(page)
          .filter({ hasText: /^closed$/ })
          .waitFor();
        await page.locator('#changes li .good', { hasText: 'closed' }).first().waitFor();
        const changes = (await page.locator('#changes li').allTextContents()).reverse().join('\n');
        expect(changes).to.match(/open[^]*half open[^]*closed/);
        await page.emulateMedia({ colorScheme: 'light' });
        if (takesPictures) await page.waitForTimeout(3_000);
        await picture(page, 'live-page-light');
      } finally {
        stop();
      }
      expect(await page.content()).not.to.contain('nobody must see');
      expect(complaints).to.deep.equal([]);
    },
    { colorScheme: 'dark' },
  );

  test(
    'is dark or light as the system is, and turns when that does',
    async ({ page }) => {
      const brightness = (): Promise<number> =>
        page.evaluate(
          'getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).reduce((sum, part) => sum + Number(part), 0)',
        );
      const dark = await brightness();
      await page.emulateMedia({ colorScheme: 'light' });
      const light = await brightness();
      expect(dark).to.be.below(150);
      expect(light).to.be.above(600);
      // Every chart was drawn anew, and none is there twice.
      expect(await page.locator('#charts canvas').count()).to.equal(4);
    },
    { colorScheme: 'dark' },
  );

  test('is read and worked with by keyboard', async ({ page, emulator, sluice }) => {
    emulator.script([{ kind: 'error', error: 'server_error', times: 1 }]);
    for (let i = 0; i < 4; i++) await ask(sluice, 'gpt-5.5');
    await page.locator('#calls tbody tr').nth(3).waitFor();

    await page.keyboard.press('Tab');
    expect(await page.locator(':focus').innerText()).to.equal('Skip to the latest calls');
    await page.keyboard.press('Enter');
    const seen: string[] = [];
    for (let i = 0; i < 3; i++) {
      await page.keyboard.press('Tab');
      seen.push(await page.evaluate('document.activeElement.value || document.activeElement.textContent'));
    }
    // The radio buttons, the button, and one stop for all rows.
    expect(seen[0]).to.equal('all');
    expect(seen[1]).to.equal('Hold');
    expect(seen[2]).to.match(/^\d\d:\d\d:\d\d$/);
    const rowInFocus = (): Promise<number> =>
      page.evaluate("[...document.querySelectorAll('#calls tbody .call button')].indexOf(document.activeElement)");
    expect(await rowInFocus()).to.equal(0);
    await page.keyboard.press('End');
    expect(await rowInFocus()).to.equal(3);
    expect(await page.locator(':focus').getAttribute('aria-label')).to.match(/gpt-5\.5: answered, 2 attempts/);
    await page.keyboard.press('Enter');
    expect(await page.locator(':focus').getAttribute('aria-expanded')).to.equal('true');
    expect(await page.locator('.details tbody tr').allInnerTexts()).to.have.length(2);

    // Rows stand still while the focus is among them.
    for (let i = 0; i < 3; i++) await ask(sluice, 'gpt-5.5');
    await page.getByText('Show 3 newer').waitFor();
    expect(await rowInFocus()).to.equal(3);
    await page.keyboard.press('Escape');
    expect(await page.locator('.details').count()).to.equal(0);
    await page.keyboard.press('ArrowUp');
    expect(await rowInFocus()).to.equal(2);
    await page.locator('#hold').press('Enter');
    await until(page, "document.querySelectorAll('#calls .call').length === 7");
  });

  test('says everything in names and roles', async ({ page, sluice }) => {
    await ask(sluice, 'gpt-5.5');
    await page.locator('#calls tbody tr').first().waitFor();
    for (const name of ['Models', 'Queue by tenant', 'What changed', 'Latest calls', 'Now', 'The last five minutes']) {
      expect(await page.locator('main').getByRole('region', { name }).count(), name).to.be.at.least(1);
    }
    expect(await page.getByRole('figure', { name: /^Traffic: calls .*, attempts / }).count()).to.equal(1);
    expect(await page.getByRole('img', { name: /answered after/ }).count()).to.equal(1);
    expect(await page.getByRole('radio', { name: 'Failed or retried' }).count()).to.equal(1);
    expect(await page.getByRole('status').first().innerText()).to.equal('Live');
  });

  play('comes back by itself when the server does', async () => {
    const source = new FakeSource();
    await inPage(
      async ({ page, leave, comeBack }) => {
        source.tell(eventOf('call.ended', performance.now(), { callId: 'before' }));
        leave();
        await page.getByText('Connection lost').waitFor();

        comeBack();
        await page.locator('#link[data-state=live]').waitFor();
        await until(page, "document.querySelectorAll('#calls .call').length === 1");
      },
      undefined,
      source,
    );
  });

  // Alone: all others have ended by then.
  it('goes on drawing at 1,000 calls a second', async function () {
    this.timeout(90_000);
    const source = new FakeSource();
    source.standing = snapshotOf({ admission: { inFlight: 40, waiting: 3 } });
    await inPage(
      async ({ page, complaints }) => {
        await page.evaluate(`
      window.seen = { frames: 0, longestGapMs: 0, longTasksMs: [], last: performance.now() };
      new PerformanceObserver((list) => seen.longTasksMs.push(...list.getEntries().map((task) => task.duration)))
        .observe({ type: 'longtask' });
      (function frame() {
        const now = performance.now();
        seen.longestGapMs = Math.max(seen.longestGapMs, now - seen.last);
        seen.last = now;
        seen.frames++;
        requestAnimationFrame(frame);
      })();
    `);
        const seconds = 4;
        const told = await busyLoad(source, { callsPerSecond: 1_000, seconds });
        await until(page, `document.querySelector('#tiles').innerText.includes('of ${told.attempts} attempts')`);
        const seen = await page.evaluate<{ frames: number; longestGapMs: number; longTasksMs: number[]; last: number }>(
          'window.seen',
        );
        const longest = Math.max(0, ...seen.longTasksMs);
        if (takesPictures) {
          console.log(
            `      ${told.calls} calls in ${seconds} s: ${seen.frames} pictures drawn, longest pause ${seen.longestGapMs.toFixed(0)} ms, ` +
              `${seen.longTasksMs.length} tasks above 50 ms, the longest ${longest.toFixed(0)} ms`,
          );
        }
        // Loose, because other specs run beside this one on two cores. A page that freezes misses by far.
        expect(seen.frames / seconds, 'pictures a second').to.be.above(8);
        expect(seen.longestGapMs, 'longest pause').to.be.below(1_500);
        expect(longest, 'longest task').to.be.below(1_000);
        expect(await page.locator('#calls .call').count()).to.equal(30);
        expect(complaints).to.deep.equal([]);
      },
      undefined,
      source,
    );
  });
});

import { expect } from 'chai';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { htmlReport, loadScenario, simulate } from '../../lib/simulator/index.ts';
import type { Scenario } from '../../lib/simulator/index.ts';
import { describeInChromium, picture, takesPictures } from '../helpers/chromium.ts';
import type { Visit } from '../helpers/chromium.ts';
import { sideBySide } from '../helpers/sideBySide.ts';

const quota = { requestsPerMinute: 600, burstRequests: 10 };
const scenario: Scenario = {
  name: 'an outage at nine tenths of the quota',
  forMs: 30_000,
  load: [
    { arrivals: { kind: 'poisson', perMinute: 400 }, model: 'm', tenant: 'acme' },
    { arrivals: { kind: 'poisson', perMinute: 150 }, model: 'm', tenant: '<b>globex</b>' },
  ],
  upstreams: {
    main: {
      ...quota,
      firstTokenMs: { median: 200, sigma: 0.4 },
      tokenMs: 5,
      tokens: 40,
      outages: [{ kind: 'error', error: 'overloaded', fromMs: 10_000, toMs: 13_000 }],
    },
  },
  policy: { quota: { account: quota }, models: { default: { price: { inputPerMTok: 1, outputPerMTok: 4 } } } },
};

/** What is read once it is as it should be: the page draws when it comes to it. In the end, what was read last. */
async function settled<T>(read: () => Promise<T>, holds: (value: T) => boolean): Promise<T> {
  const endMs = performance.now() + 10_000;
  for (;;) {
    const value = await read();
    if (holds(value) || performance.now() > endMs) return value;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

describeInChromium('the report of a simulation, in Chromium', (browser) => {
  const play = sideBySide(3);
  let folder: string;
  let url: string;

  function write(of: Scenario, name = 'report'): string {
    const path = join(folder, `${name}.html`);
    writeFileSync(path, htmlReport(of, simulate(of, { timeline: true })));
    return pathToFileURL(path).href;
  }

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-report-'));
    url = write(scenario);
  });
  after(() => rmSync(folder, { recursive: true }));

  /** In a page of its own, with the report of `scenario`. */
  const test = (title: string, look: (visit: Visit) => Promise<void>, options?: BrowserContextOptions): void =>
    void play(title, () => browser.visit(url, look, options));

  const figure = (page: Page, title: string) =>
    page.locator('figure', { has: page.getByRole('heading', { name: title, exact: true }) });
  /** How many points of a plot are of one colour of the page. */
  const painted = (page: Page, title: string, colour: string): Promise<number> =>
    figure(page, title)
      .locator('canvas')
      .evaluate((canvas, name) => {
        const view = globalThis as unknown as {
          getComputedStyle(of: unknown): { getPropertyValue(name: string): string };
          document: { documentElement: unknown };
        };
        const wanted = view.getComputedStyle(view.document.documentElement).getPropertyValue(name).trim();
        const [r, g, b] = [1, 3, 5].map((at) => parseInt(wanted.slice(at, at + 2), 16));
        const drawn = canvas as unknown as {
          width: number;
          height: number;
          getContext(kind: '2d'): { getImageData(x: number, y: number, w: number, h: number): { data: Uint8Array } };
        };
        const { data } = drawn.getContext('2d').getImageData(0, 0, drawn.width, drawn.height);
        let count = 0;
        for (let i = 0; i < data.length; i += 4) {
          if (data[i] === r && data[i + 1] === g && data[i + 2] === b && data[i + 3] === 255) count++;
        }
        return count;
      }, colour);

  const drawn = (page: Page, title: string): Promise<number> =>
    settled(
      () => painted(page, title, '--line-0'),
      (points) => points > 20,
    );

  test(
    'opens as a file, asks for nothing, and draws every plot',
    async ({ page, complaints }) => {
      const asked: string[] = [];
      page.on('request', (request) => asked.push(request.url()));
      await page.reload();
      await page.locator('figure canvas').nth(10).waitFor();
      const titles = await page.locator('figure h3').allTextContents();
      expect(titles).to.deep.equal([
        'Answered',
        '429s per request sent',
        'Attempts per call',
        'Requests per minute',
        'Quota used: requests per minute, account of main',
        'Queue wait over time',
        'Time to first content over time',
        'Whole answer over time',
        'Queue wait',
        'Time to first content',
        'Whole answer',
      ]);
      for (const title of titles) expect(await drawn(page, title), title).to.be.above(20);
      expect(asked).to.deep.equal([url]);
      expect(complaints).to.deep.equal([]);
      expect(await page.locator('b', { hasText: 'globex' }).count()).to.equal(0);
      await page.getByRole('rowheader', { name: '<b>globex</b>: calls' }).waitFor();
    },
    { colorScheme: 'light' },
  );

  test('shows the strategies that are chosen, and the percentile', async ({ page }) => {
    const title = 'Time to first content over time';
    const said = async (): Promise<string> => (await figure(page, title).getAttribute('aria-label')) ?? '';
    expect(await said()).to.match(/best possible .*, bare .*, sluice \d/);
    const p95 = await said();
    await page.getByRole('radio', { name: 'p50' }).check();
    expect(await settled(said, (text) => text !== p95)).to.not.equal(p95);
    await page.getByRole('checkbox', { name: 'sluice' }).uncheck();
    expect(await settled(said, (text) => !text.includes('sluice'))).to.not.match(/sluice/);
    const points = (): Promise<number> => painted(page, title, '--line-0');
    expect(await settled(points, (count) => count === 0)).to.equal(0);
    const values = figure(page, title).locator('.values li:visible');
    expect(
      await settled(
        () => values.count(),
        (count) => count === 4,
      ),
    ).to.equal(4);
  });

  test('has a table behind each plot, of what is shown', async ({ page }) => {
    const plot = figure(page, '429s per request sent');
    await plot.getByText('As a table').click();
    const table = plot.getByRole('table');
    await table.getByRole('row').nth(99).waitFor();
    expect(await table.getByRole('columnheader').allTextContents()).to.deep.equal([
      'From',
      'best possible',
      'bare',
      'sdk, 2 retries',
      'backoff',
      'sluice',
    ]);
    expect(await table.getByRole('row').count()).to.be.at.most(242);
    await page.getByRole('checkbox', { name: 'backoff' }).uncheck();
    const columns = (): Promise<number> => table.getByRole('columnheader').count();
    expect(await settled(columns, (count) => count === 5)).to.equal(5);
    const spread = figure(page, 'Whole answer');
    await spread.getByText('As a table').click();
    await spread.getByRole('rowheader', { name: '95.00 %', exact: true }).waitFor();
  });

  test('is read and worked with by keyboard', async ({ page }) => {
    const seen: string[] = [];
    for (let i = 0; i < 12; i++) {
      await page.keyboard.press('Tab');
      seen.push(
        await page.evaluate(
          "document.activeElement.ariaLabel ?? document.activeElement.closest('label')?.textContent ?? document.activeElement.textContent",
        ),
      );
    }
    expect(seen).to.include('Figures, by strategy').and.include('sluice').and.include('p95').and.include('As a table');
    await page.getByText('As a table').first().press('Enter');
    await page.locator('details[open]').waitFor();
    expect(await page.locator('details[open]').count()).to.equal(1);
    for (const name of ['Figures', 'By tenant', 'Over time', 'How long it took', 'To repeat it']) {
      expect(await page.getByRole('region', { name, exact: true }).count(), name).to.equal(1);
    }
  });

  test(
    'is dark or light as the system is, and turns when that does',
    async ({ page }) => {
      await page.locator('figure canvas').nth(10).waitFor();
      const colour = (): Promise<string> => page.evaluate('getComputedStyle(document.documentElement).backgroundColor');
      expect(await colour()).to.equal('rgb(13, 17, 23)');
      await page.emulateMedia({ colorScheme: 'light' });
      expect(await colour()).to.equal('rgb(244, 246, 248)');
      expect(await drawn(page, 'Answered')).to.be.above(20);
      expect(await page.locator('figure canvas').count()).to.equal(11);
    },
    { colorScheme: 'dark' },
  );

  play('plots the limits of which most was used, eight at the most', async () => {
    const models = Array.from({ length: 10 }, (_, i) => `m${i}`);
    const many: Scenario = {
      name: 'ten models, and one that nobody asks',
      forMs: 4000,
      load: models.map((model, i) => ({ arrivals: { kind: 'constant', perMinute: 60 * (i + 1) }, model })),
      upstreams: {
        main: { models: Object.fromEntries([...models, 'idle'].map((name) => [name, { requestsPerMinute: 6000 }])) },
      },
      strategies: [{ kind: 'bare' }],
    };
    await browser.visit(write(many, 'many'), async ({ page }) => {
      const titles = await page.locator('figure h3', { hasText: 'Quota used' }).allTextContents();
      expect(titles).to.deep.equal(models.slice(2).map((name) => `Quota used: requests per minute, ${name}`));
    });
  });

  test(
    'can be read where it is narrow',
    async ({ page }) => {
      await page.locator('figure canvas').nth(10).waitFor();
      expect(await page.evaluate<number>('document.documentElement.scrollWidth')).to.be.at.most(390);
    },
    { viewport: { width: 390, height: 800 } },
  );

  if (takesPictures) {
    it('looks like this', async function () {
      this.timeout(180_000);
      const { page } = await browser.open(write(loadScenario('examples/scenarios/outage.yaml')), {
        colorScheme: 'light',
        viewport: { width: 1440, height: 1500 },
      });
      await page.locator('figure canvas').nth(10).waitFor();
      await page.locator('#choices').scrollIntoViewIfNeeded();
      await page.evaluate("document.querySelector('#choices').scrollIntoView()");
      await picture(page, 'simulation-report');
    });
  }
});

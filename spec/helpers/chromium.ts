import { existsSync, mkdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { chromium } from 'playwright-core';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';

const COMMANDS = ['chromium', 'chromium-browser', 'google-chrome'];
const IMAGES = join(import.meta.dirname, '../../docs/images');

/** Whether this run makes the pictures of the docs: `SLUICE_SCREENSHOTS=1`. Tests alone leave them as they are. */
export const takesPictures: boolean = process.env['SLUICE_SCREENSHOTS'] === '1';

/** A page of its own, with what it complained about: errors, and whatever its security policy kept it from. */
export interface Visit {
  readonly page: Page;
  readonly complaints: readonly string[];
}

export interface BrowserUnderTest {
  /** Closed after the test. */
  open(url: string, options?: BrowserContextOptions): Promise<Visit>;
  /** Closed once `look` has ended: for tests that are played side by side. */
  visit(url: string, look: (visit: Visit) => Promise<void>, options?: BrowserContextOptions): Promise<void>;
}

function commandOf(): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  return COMMANDS.flatMap((name) => folders.map((folder) => join(folder, name))).find(existsSync);
}

/** `describe` for specs in a browser. Where none is installed they are skipped with a notice, and fail in CI. */
export function describeInChromium(title: string, specs: (browser: BrowserUnderTest) => void): void {
  const executablePath = commandOf();
  const missing = 'needs chromium, which is not installed (Debian: apt install chromium)';
  describe(title, function () {
    if (executablePath === undefined) {
      if (process.env['CI'] === undefined) it.skip(missing);
      else {
        it(missing, () => {
          throw new Error(missing);
        });
      }
      return;
    }
    this.timeout(takesPictures ? 180_000 : 60_000);
    this.slow(15_000);
    let browser: Browser | undefined;
    const pages: Page[] = [];
    before(async () => {
      browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
    });
    afterEach(() => Promise.all(pages.splice(0).map((page) => page.context().close())));
    after(() => browser?.close());

    const open = async (url: string, options: BrowserContextOptions = {}): Promise<Visit> => {
      if (browser === undefined) throw new Error('the browser has not started');
      const context = await browser.newContext({
        viewport: { width: 1440, height: 1000 },
        locale: 'en-GB',
        ...options,
      });
      const page = await context.newPage();
      const complaints: string[] = [];
      page.on('pageerror', ({ message }) => complaints.push(message));
      page.on('console', (message) => {
        // A server that is away is what some of the tests are about.
        if (message.type() === 'error' && !message.text().includes('Failed to load resource')) {
          complaints.push(message.text());
        }
      });
      await page.goto(url);
      return { page, complaints };
    };

    specs({
      async open(url, options) {
        const visit = await open(url, options);
        pages.push(visit.page);
        return visit;
      },
      async visit(url, look, options) {
        const visit = await open(url, options);
        try {
          await look(visit);
        } finally {
          await visit.page.context().close();
        }
      },
    });
  });
}

/** Asks again and again until an expression is true in the page. Playwright's own way is kept out by strict policies. */
export async function until(page: Page, expression: string, withinMs = 20_000): Promise<void> {
  const endMs = performance.now() + withinMs;
  while (!(await page.evaluate<boolean>(`Boolean(${expression})`))) {
    if (performance.now() > endMs) throw new Error(`not true within ${withinMs} ms: ${expression}`);
    await page.waitForTimeout(50);
  }
}

/** Puts a picture into `docs/images`, where this run makes them. */
export async function picture(page: Page, name: string): Promise<void> {
  if (!takesPictures) return;
  mkdirSync(IMAGES, { recursive: true });
  await page.screenshot({ path: join(IMAGES, `${name}.png`) });
}

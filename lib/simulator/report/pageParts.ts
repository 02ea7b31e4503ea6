import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Html } from './html.ts';

/** In the order in which they need each other. */
const SCRIPTS = ['dom.js', 'format.js', 'plot.js', 'report.js'] as const;

export interface PageParts {
  readonly styles: Html;
  readonly scripts: Html;
  /** A policy that lets nothing run or be fetched but these parts. */
  readonly security: string;
}

let parts: PageParts | undefined;

/** Styles and scripts of the report, with the plots of uPlot as it was installed. Read once. */
export function pageParts(): PageParts {
  if (parts !== undefined) return parts;
  const { resolve } = createRequire(import.meta.url);
  const installed = (module: string): string => readFileSync(resolve(module), 'utf8');
  const own = (name: string): string => readFileSync(join(import.meta.dirname, 'page', name), 'utf8');
  const css = `${installed('uplot/dist/uPlot.min.css')}\n${own('report.css')}`;
  const plots = installed('uplot/dist/uPlot.iife.min.js');
  // One module has no others to ask for, which a page that is opened as a file could not.
  const script = SCRIPTS.map((name) => withoutModules(own(name))).join('\n');
  for (const text of [css, plots, script]) checkInline(text);
  parts = {
    styles: new Html(`<style>${css}</style>`),
    scripts: new Html(`<script>${plots}</script>\n<script type="module">${script}</script>`),
    security: [
      "default-src 'none'",
      `script-src ${hashOf(plots)} ${hashOf(script)}`,
      `style-src ${hashOf(css)}`,
      "base-uri 'none'",
      "form-action 'none'",
    ].join('; '),
  };
  return parts;
}

/** Each file imports only from those before it, and no two have the same names. */
function withoutModules(script: string): string {
  return script.replace(/^import .*;\n/gm, '').replace(/^export /gm, '');
}

/** Nothing in it may end the element that it stands in. */
function checkInline(text: string): void {
  if (/<\/(?:script|style)|<!--/i.test(text)) throw new Error('a part of the report cannot stand within a page');
}

function hashOf(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

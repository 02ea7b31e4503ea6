import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

export interface PageFile {
  readonly type: string;
  readonly body: Buffer;
  readonly etag: string;
}

const TYPES = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
} as const;

const OWN = [
  'index.html',
  'live.css',
  'icon.svg',
  'live.js',
  'feed.js',
  'charts.js',
  'tiles.js',
  'standing.js',
  'calls.js',
  'waterfall.js',
  'dom.js',
  'format.js',
] as const;

/** The chart library as it was installed: users get its fixes by npm, and nothing is copied. */
const CHARTS = { 'uplot.js': 'uplot/dist/uPlot.esm.js', 'uplot.css': 'uplot/dist/uPlot.min.css' } as const;

let files: ReadonlyMap<string, PageFile> | undefined;

/** By the path that the browser asks for, without the slash; the page itself is the empty one. Read once. */
export function pageFiles(): ReadonlyMap<string, PageFile> {
  if (files !== undefined) return files;
  const { resolve } = createRequire(import.meta.url);
  const own = OWN.map((name) => [name, join(import.meta.dirname, 'page', name)] as const);
  const charts = Object.entries(CHARTS).map(([name, module]) => [name, resolve(module)] as const);
  files = new Map([...own, ...charts].map(([name, path]) => [name === 'index.html' ? '' : name, fileAt(path)]));
  return files;
}

function fileAt(path: string): PageFile {
  const body = readFileSync(path);
  const extension = path.slice(path.lastIndexOf('.') + 1) as keyof typeof TYPES;
  return {
    type: TYPES[extension],
    body,
    etag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`,
  };
}

import { nonEmpty, oneOf, wholeNumber, zeroOrInfinity } from '../../core/checks.ts';
import { invalidOption } from '../../core/errors.ts';
import { systemRuntime } from '../../core/runtime.ts';
import type { Runtime } from '../../core/runtime.ts';

export interface LivePageOptions {
  /** Shown at the top: which service this is. Default: `Sluice`. */
  readonly title?: string | undefined;
  /**
   * Where the page is, for servers that hand over whole addresses: `/live`. Express takes off by itself what it was
   * mounted under. Default: `/`.
   */
  readonly path?: string | undefined;
  /**
   * `'watched'`: calls are followed while somebody looks, and `lingerMs` longer. `'always'`: the last five minutes are
   * there when the page opens, at the cost that the reference names for each call. Default: `'watched'`.
   */
  readonly follow?: 'watched' | 'always' | undefined;
  /** How long calls are still followed after the last viewer has left. Milliseconds, or `Infinity`. Default: 60,000. */
  readonly lingerMs?: number | undefined;
  /** Between two updates, the same for all viewers. 250 or more. Default: 500. */
  readonly frameMs?: number | undefined;
  /** Those that come later are answered 503. Default: 20. */
  readonly maxViewers?: number | undefined;
  /** Models that are shown. Default: 40. */
  readonly maxModels?: number | undefined;
  /** Tenants that are shown one by one: those that wait most. Default: 20. */
  readonly maxTenants?: number | undefined;
  /** Must be the one of the client. Default: real time. */
  readonly runtime?: Runtime | undefined;
}

export type LiveSettings = { readonly [K in keyof LivePageOptions]-?: Exclude<LivePageOptions[K], undefined> };

/** Defaults of {@link LivePageOptions}. */
export const LIVE_PAGE_DEFAULTS: Readonly<Omit<LiveSettings, 'runtime'>> = Object.freeze({
  title: 'Sluice',
  path: '/',
  follow: 'watched',
  lingerMs: 60_000,
  frameMs: 500,
  maxViewers: 20,
  maxModels: 40,
  maxTenants: 20,
});

/** @throws SluiceError `invalid_option` */
export function liveSettings(options: LivePageOptions): LiveSettings {
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
  const settings: LiveSettings = { ...LIVE_PAGE_DEFAULTS, runtime: systemRuntime, ...given };
  nonEmpty('title', settings.title);
  if (nonEmpty('path', settings.path)[0] !== '/') throw invalidOption('path', 'begins with /', settings.path);
  oneOf('follow', settings.follow, ['watched', 'always']);
  zeroOrInfinity('lingerMs', settings.lingerMs);
  wholeNumber('frameMs', settings.frameMs, 250);
  wholeNumber('maxViewers', settings.maxViewers);
  wholeNumber('maxModels', settings.maxModels);
  wholeNumber('maxTenants', settings.maxTenants);
  return settings;
}

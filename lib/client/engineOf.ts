import { invalidOption } from '../core/errors.ts';
import type { Engine } from './Engine.ts';
import type { Sluice } from './Sluice.ts';

const engines = new WeakMap<object, Engine>();

/** What a client that `createSluice` made runs on, for the parts of this library that pass on what others ask. */
export function engineOf(sluice: object): Engine {
  const engine = engines.get(sluice);
  if (engine === undefined) throw invalidOption('sluice', 'what createSluice returns', sluice);
  return engine;
}

export function keepEngine(sluice: Sluice, engine: Engine): Sluice {
  engines.set(sluice, engine);
  return sluice;
}

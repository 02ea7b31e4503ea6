import { z } from 'zod';

// Every check carries the same text: what is expected there. It becomes the message of the issue.

type Leaf<T> = z.ZodType<T>;

export function finite(least: number): Leaf<number> {
  const error = `a number of ${least} or more`;
  return z.number({ error }).min(least, { error });
}

export function above0(): Leaf<number> {
  const error = 'a number above 0';
  return z.number({ error }).positive({ error });
}

export function above0OrOff(): Leaf<number | null> {
  const error = 'a number above 0, or null for no bound';
  return z.number({ error }).positive({ error }).nullable();
}

export function finiteOrOff(least: number): Leaf<number | null> {
  const error = `a number of ${least} or more, or null for no bound`;
  return z.number({ error }).min(least, { error }).nullable();
}

export function whole(least: number): Leaf<number> {
  const error = `a whole number of at least ${least}`;
  return z.number({ error }).int({ error }).min(least, { error });
}

export function wholeOrOff(least: number): Leaf<number | null> {
  const error = `a whole number of at least ${least}, or null for no bound`;
  return z.number({ error }).int({ error }).min(least, { error }).nullable();
}

/** From 0 to 1. */
export function ratio(): Leaf<number> {
  const error = 'a number from 0 to 1';
  return z.number({ error }).min(0, { error }).max(1, { error });
}

/** Above 0, at most 1. */
export function share(): Leaf<number> {
  const error = 'a number above 0 and at most 1';
  return z.number({ error }).positive({ error }).max(1, { error });
}

export function shareOrOff(): Leaf<number | null> {
  const error = 'a number above 0 and at most 1, or null for never';
  return z.number({ error }).positive({ error }).max(1, { error }).nullable();
}

/** Above 0, below 1. */
export function fraction(): Leaf<number> {
  const error = 'a number above 0 and below 1';
  return z.number({ error }).positive({ error }).lt(1, { error });
}

export function flag(): Leaf<boolean> {
  return z.boolean({ error: 'true or false' });
}

export function oneOf<const T extends string>(values: readonly T[]): Leaf<T> {
  return z.enum(values as readonly [T, ...T[]], { error: `one of ${values.join(', ')}` });
}

export function text(what: string): Leaf<string> {
  const error = `${what}, as text that is not empty`;
  return z.string({ error }).min(1, { error });
}

export function listOf<T>(item: Leaf<T>, what: string, least = 0): Leaf<T[]> {
  const error = `a list of ${what}${least > 0 ? ', not empty' : ''}`;
  return z.array(item, { error }).min(least, { error });
}

/** Any names, each with such a value. */
export function named<T>(value: Leaf<T>, what: string): Leaf<Record<string, T>> {
  const error = `an object that maps ${what}`;
  const key = z.string({ error }).min(1, { error: 'a name that is not empty' });
  return z.record(key, value, { error });
}

type Shape = Readonly<Record<string, z.ZodType>>;

/** An object with these keys and no others. For an unknown key the issue's message lists those that there are. */
export function strict<S extends Shape>(shape: S): z.ZodObject<S, z.core.$strict> {
  return z.strictObject(shape, { error: keysOr(shape, 'an object') }) as z.ZodObject<S, z.core.$strict>;
}

function keysOr(shape: Shape, otherwise: string): (issue: { readonly code?: string }) => string {
  const keys = Object.keys(shape).join(', ');
  return ({ code }) => (code === 'unrecognized_keys' ? keys : otherwise);
}

/** An optional setting with what editors show of it. A default of `Infinity` is written `null`. */
export function setting<T>(schema: Leaf<T>, description: string, standard?: unknown): z.ZodOptional<Leaf<T>> {
  const shown = standard === undefined ? {} : { default: standard === Infinity ? null : standard };
  return schema.optional().meta({ description, ...shown });
}

/** Not looked into. What is not plain data has been found before. */
export function anything(): Leaf<unknown> {
  return z.unknown();
}

export function headerName(): Leaf<string | null> {
  const error = 'the name of a header, or null for none';
  return z
    .string({ error })
    .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, { error })
    .nullable();
}

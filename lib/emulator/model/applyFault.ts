import type { ProviderErrorKind } from './dialects/Dialect.ts';
import type { BodyEnd, Fault } from './faults.ts';
import { inBandError } from './inBandError.ts';
import type { AnyInBandError } from './inBandError.ts';
import type { ProviderApi } from './request.ts';
import type { ProviderStep, Steps } from './steps.ts';
import { wholeBody } from './steps.ts';
import { shifted, strike } from './strike.ts';
import type { Interruption } from './strike.ts';

export interface FaultContext {
  readonly api: ProviderApi;
  readonly model: string;
  /** Headers of a streamed answer. */
  readonly streamHeaders: Readonly<Record<string, string>>;
  /** Headers of any answer, without a content type. */
  readonly headers: Readonly<Record<string, string>>;
  /** When the first content was due. */
  readonly firstTokenMs: number;
  /** An error as the dialect words it. */
  errorReply(
    kind: ProviderErrorKind,
    retryAfterMs: number | undefined,
    atMs: number,
    status: number | undefined,
  ): readonly ProviderStep[];
}

/**
 * A reset may destroy what was sent and not yet read, so it waits this long: then the client has what a test counts on.
 */
const BEFORE_RESET_MS = 10;
const PAGE =
  '<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>\n';
const BROKEN_CHUNK = 'data: {"id":"chatcmpl-broken","choices":[{"index":0,"delta":{"content":"oops\n\n';
const DEFAULT_FLOOD_CHUNK = 65_536;

/** What becomes of an answer under a fault. */
export function applyFault(fault: Fault, steps: Steps, context: FaultContext): Steps {
  switch (fault.kind) {
    case 'pass':
    case 'slow':
    case 'finish':
      return steps; // These change the answer itself, before it is made.
    case 'reply':
      return reply(fault, context);
    case 'error':
      return context.errorReply(fault.error, fault.retryAfterMs, fault.delayMs ?? 0, fault.status);
    case 'refuse_prefix':
      return context.errorReply('prefix_refused', undefined, 0, undefined);
    case 'html': {
      const headers = { ...context.headers, 'content-type': 'text/html' };
      return wholeBody(0, fault.status ?? 502, headers, PAGE);
    }
    case 'cut':
      return strike(steps, fault.after, ({ atMs }) => [{ kind: 'end', atMs }]);
    case 'reset':
      return strike(steps, fault.after, ({ atMs }) => [
        { kind: 'reset', atMs: fault.after === 'connect' ? atMs : atMs + BEFORE_RESET_MS },
      ]);
    case 'stall':
      return strike(steps, fault.after, (at) => silence(at, fault.forMs ?? Infinity, fault.commentsEveryMs));
    case 'in_band_error':
      return strike(steps, fault.after, ({ atMs }) => errorEvent(fault, atMs, context));
    case 'malformed':
      return strike(steps, fault.after, (at) => inserted(at, fault.text ?? BROKEN_CHUNK));
    case 'huge_event':
      return strike(steps, fault.after, (at) => inserted(at, hugeEvent(fault.bytes)));
    case 'no_done':
      return withoutDone(steps, fault.keepOpen === true);
    case 'no_usage':
      return withoutUsage(steps);
    case 'empty':
      return emptyStream(fault.done === true, context);
    case 'bytes':
      return verbatim(fault, context);
    case 'flood':
      return flood(fault, steps, context);
  }
}

function ending(end: BodyEnd | undefined, atMs: number): ProviderStep {
  if (end === 'hang') return { kind: 'hang', atMs };
  return end === 'reset' ? { kind: 'reset', atMs: atMs + BEFORE_RESET_MS } : { kind: 'end', atMs };
}

function* reply(fault: Extract<Fault, { kind: 'reply' }>, context: FaultContext): Generator<ProviderStep, void> {
  const { status, headers, body, delayMs: atMs = 0, end } = fault;
  const type = typeof body === 'string' ? 'text/plain' : 'application/json';
  yield { kind: 'head', atMs, status, headers: { 'content-type': type, ...context.headers, ...lowerCased(headers) } };
  if (body !== undefined) yield { kind: 'body', atMs, text: typeof body === 'string' ? body : JSON.stringify(body) };
  yield ending(end, atMs);
}

function* silence(at: Interruption, forMs: number, commentsEveryMs: number | undefined): Generator<ProviderStep, void> {
  if (commentsEveryMs !== undefined) {
    for (let waitedMs = commentsEveryMs; waitedMs < forMs; waitedMs += commentsEveryMs) {
      yield { kind: 'comment', atMs: at.atMs + waitedMs, text: 'keep-alive' };
    }
  }
  if (forMs === Infinity) yield { kind: 'hang', atMs: at.nextMs };
  else yield* shifted(at.rest, forMs);
}

function* errorEvent(
  fault: Extract<Fault, { kind: 'in_band_error' }>,
  atMs: number,
  context: FaultContext,
): Generator<ProviderStep, void> {
  const { shape = 'openai', error = 'server_error' } = fault;
  const made: AnyInBandError =
    fault.value === undefined ? inBandError(shape, error, context) : { value: fault.value, event: undefined };
  yield { kind: 'event', atMs, part: 'fault', tokens: 0, ...made };
  if (fault.thenDone === true) yield { kind: 'done', atMs };
  yield ending(fault.end, atMs);
}

function* inserted(at: Interruption, text: string): Generator<ProviderStep, void> {
  yield { kind: 'bytes', atMs: at.atMs, bytes: text };
  yield* shifted(at.rest, 0);
}

function hugeEvent(bytes: number): string {
  const [before, after] = ['data: {"choices":[{"index":0,"delta":{"content":"', '"},"finish_reason":null}]}\n\n'];
  return before + 'x'.repeat(Math.max(0, bytes - before.length - after.length)) + after;
}

function* withoutDone(steps: Steps, keepOpen: boolean): Generator<ProviderStep, void> {
  for (const step of steps) {
    if (step.kind === 'done') continue;
    yield keepOpen && step.kind === 'end' ? { kind: 'hang', atMs: step.atMs } : step;
  }
}

function* withoutUsage(steps: Steps): Generator<ProviderStep, void> {
  for (const step of steps) {
    if (step.kind === 'event' && step.part === 'usage') continue;
    yield step;
  }
}

function* emptyStream(done: boolean, { streamHeaders: headers }: FaultContext): Generator<ProviderStep, void> {
  yield { kind: 'head', atMs: 0, status: 200, headers };
  if (done) yield { kind: 'done', atMs: 0 };
  yield { kind: 'end', atMs: 0 };
}

function* verbatim(fault: Extract<Fault, { kind: 'bytes' }>, context: FaultContext): Generator<ProviderStep, void> {
  const { chunks, everyMs = 0, delayMs = 0, headers } = fault;
  yield { kind: 'head', atMs: delayMs, status: 200, headers: { ...context.streamHeaders, ...lowerCased(headers) } };
  let atMs = delayMs;
  for (const chunk of chunks) {
    for (const bytes of writesOf(chunk)) yield { kind: 'bytes', atMs: (atMs += everyMs), bytes };
  }
  yield ending(fault.end, atMs);
}

function* writesOf(chunk: Extract<Fault, { kind: 'bytes' }>['chunks'][number]): Generator<string | Uint8Array, void> {
  if (typeof chunk === 'string') {
    yield chunk;
  } else if ('hex' in chunk) {
    yield Uint8Array.from(chunk.hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
  } else {
    for (let i = 0; i < chunk.repeat; i++) yield chunk.text;
  }
}

/** The answer with its content replaced by a long one that no timer paces. */
function* flood(
  fault: Extract<Fault, { kind: 'flood' }>,
  steps: Steps,
  context: FaultContext,
): Generator<ProviderStep, void> {
  const { bytes, chunkBytes = DEFAULT_FLOOD_CHUNK } = fault;
  const filler = 'x'.repeat(chunkBytes);
  let poured = false;
  for (const step of steps) {
    const isContent = step.kind === 'event' && step.part === 'content';
    if (!isContent) {
      yield { ...step, atMs: Math.min(step.atMs, context.firstTokenMs) };
    } else if (!poured) {
      poured = true;
      for (let left = bytes; left > 0; left -= chunkBytes) {
        yield { ...step, tokens: 0, value: withText(step.value, filler.slice(0, Math.min(left, chunkBytes))) };
      }
    }
  }
}

/** A content event of either API with another text. */
function withText(value: unknown, text: string): unknown {
  const event = value as Readonly<Record<string, unknown>>;
  if ('delta' in event) return { ...event, delta: text };
  return { ...event, choices: [{ index: 0, delta: { content: text }, logprobs: null, finish_reason: null }] };
}

function lowerCased(headers: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

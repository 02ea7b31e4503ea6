import type { FaultPosition } from './faults.ts';
import type { ProviderStep, Steps } from './steps.ts';

/** Where a stream was interrupted. */
export interface Interruption {
  /** When the step before the place was due. */
  readonly atMs: number;
  /** When the step after the place is due. */
  readonly nextMs: number;
  /** What would have come, the first step included. */
  readonly rest: Iterator<ProviderStep, void>;
}

/**
 * Passes `steps` on up to a place and then what `then` makes of the rest. Where the place does not come (an answer with
 * fewer chunks than the fault counts), it is before the finish reason, or else before the end.
 */
export function* strike(
  steps: Steps,
  place: FaultPosition,
  then: (at: Interruption) => Steps,
): Generator<ProviderStep, void> {
  const source = steps[Symbol.iterator]() as Iterator<ProviderStep, void>;
  let seen: ProviderStep | undefined;
  let content = 0;
  for (;;) {
    const { value: step, done } = source.next();
    if (done === true) return;
    if (isPlace(place, step, seen, content)) {
      const rest = prepend(step, source);
      yield* then({ atMs: seen?.atMs ?? step.atMs, nextMs: step.atMs, rest });
      return;
    }
    if (step.kind === 'body' && place !== 'connect') {
      // An answer that is not streamed: the middle of its body.
      const middle = step.text.length >> 1;
      yield { ...step, text: step.text.slice(0, middle) };
      const half: ProviderStep = { ...step, text: step.text.slice(middle) };
      yield* then({ atMs: step.atMs, nextMs: step.atMs, rest: prepend(half, source) });
      return;
    }
    if (step.kind === 'event' && step.part === 'content') content++;
    seen = step;
    yield step;
  }
}

/** Whether the place is right before `step`. */
function isPlace(place: FaultPosition, step: ProviderStep, seen: ProviderStep | undefined, content: number): boolean {
  if (place === 'connect') return seen === undefined;
  if (seen === undefined) return false;
  if (place === 'headers') return seen.kind === 'head';
  if (step.kind === 'end') return true;
  if (place === 'done') return false;
  const finishes = step.kind === 'done' || (step.kind === 'event' && (step.part === 'finish' || step.part === 'usage'));
  if (place === 'finish') return finishes && !(step.kind === 'event' && step.part === 'finish');
  if (finishes) return true;
  return typeof place === 'number' && step.kind === 'event' && step.part === 'content' && content >= place;
}

/** The steps of an iterator, each `laterMs` later. */
export function* shifted(steps: Iterator<ProviderStep, void>, laterMs: number): Generator<ProviderStep, void> {
  for (;;) {
    const { value, done } = steps.next();
    if (done === true) return;
    yield laterMs === 0 ? value : { ...value, atMs: value.atMs + laterMs };
  }
}

function* prepend(first: ProviderStep, rest: Iterator<ProviderStep, void>): Generator<ProviderStep, void> {
  yield first;
  yield* shifted(rest, 0);
}

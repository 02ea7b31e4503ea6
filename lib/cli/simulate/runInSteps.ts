/** What came of work that the user may end before it is done. */
export type StepsOutcome<R> = { readonly kind: 'done'; readonly value: R } | { readonly kind: 'interrupted' };

/**
 * Runs `steps` to their end, or until `interrupted` settles. Signals are heard between two steps only, which should be
 * short.
 */
export async function runInSteps<T, R>(
  steps: Iterator<T, R>,
  interrupted: Promise<void>,
  onStep: (step: T) => void,
): Promise<StepsOutcome<R>> {
  let isInterrupted = false;
  void interrupted.then(() => (isInterrupted = true));
  for (;;) {
    const step = steps.next();
    if (step.done === true) return { kind: 'done', value: step.value };
    onStep(step.value);
    await new Promise((resolve) => setImmediate(resolve));
    if (isInterrupted) return { kind: 'interrupted' };
  }
}

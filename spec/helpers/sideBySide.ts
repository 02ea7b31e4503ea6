/** What `it` is to tests that others play. */
export type TestOf = (title: string, test: () => Promise<void> | void) => unknown;

/**
 * An `it` for tests that mostly wait and share nothing: `atOnce` of a suite are played at a time, and each is told of by its own name.
 * What they need is there from `before` to `after`; a `beforeEach` or `afterEach` would come in the middle of the others.
 */
export function sideBySide(atOnce: number): TestOf {
  const tests: (() => Promise<void> | void)[] = [];
  const played: (Promise<void> | undefined)[] = [];

  const play = (place: number): void => {
    const test = tests[place];
    if (test === undefined || played[place] !== undefined) return;
    const ended = Promise.resolve().then(test);
    ended.catch(() => {}); // Told when its turn has come.
    played[place] = ended;
  };
  after(async () => void (await Promise.allSettled(played.filter((one) => one !== undefined))));

  return (title, test) => {
    const place = tests.push(test) - 1;
    it(title, () => {
      for (let next = place; next < place + atOnce; next++) play(next);
      return played[place];
    });
  };
}

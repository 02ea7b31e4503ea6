/** What may happen to a {@link World}, by name. Returns what was answered, as far as the world's key determines it. */
export type Deed = readonly [name: string, act: () => unknown];

/** A machine with its callers and its clock. Everything that can happen is a deed; nothing happens between two of them. */
export interface World {
  deeds(): readonly Deed[];
  /** Worlds with the same key go on alike: the deeds have the same answers. */
  key(): string;
  /** Which rule is broken now, if one is. Deeds break rules by throwing. */
  wrong(): string | undefined;
  /** Whether everything is over and given back. */
  ended(): boolean;
}

export interface Exploration {
  readonly states: number;
  readonly steps: number;
  readonly deepest: number;
  readonly violation: { readonly what: string; readonly trace: readonly string[] } | undefined;
}

interface Path {
  readonly from: State | undefined;
  readonly deed: number;
  readonly name: string;
}

interface State {
  readonly number: number;
  readonly depth: number;
  readonly path: Path;
  /** The second way that was found here. */
  rival: Path | undefined;
  answers: string;
  readonly next: number[];
  readonly ended: boolean;
}

/** Far above what any model has: a world whose key never repeats is a mistake in the model. */
const MOST_STATES = 2_000_000;

class Broken extends Error {
  readonly path: Path;

  constructor(what: string, path: Path) {
    super(what);
    this.path = path;
  }
}

/**
 * Visits every state that a world can get into, the nearest first, so that the trace of what goes wrong is as short as it can
 * be. A machine keeps its state to itself, so a state is copied by doing everything again that led to it.
 *
 * Three things are checked: no state and no deed breaks a rule; from every state the end can be reached; and two different
 * ways into a state are answered alike from there on, which is what makes it one state.
 */
export function explore(make: () => World): Exploration {
  const known = new Map<string, State>();
  const states: State[] = [];
  let steps = 0;

  const arrive = (world: World, path: Path): State => {
    const wrong = world.wrong();
    if (wrong !== undefined) throw new Broken(wrong, path);
    const key = world.key();
    const before = known.get(key);
    if (before !== undefined) {
      if (before.rival === undefined && before.path.from !== path.from) before.rival = path;
      return before;
    }
    const depth = path.from === undefined ? 0 : path.from.depth + 1;
    const ended = world.ended();
    const state: State = { number: states.length, depth, path, rival: undefined, answers: '', next: [], ended };
    if (state.number >= MOST_STATES) throw new Error(`more than ${MOST_STATES} states`);
    known.set(key, state);
    states.push(state);
    return state;
  };

  /** Does each deed in a copy of the world that the path leads to. */
  const tryAll = (path: Path, visit: (world: World, path: Path) => void, from: State): string => {
    const indexes = indexesOf(path);
    const answers: string[] = [];
    for (let deed = 0, count = 1; deed < count; deed++) {
      const world = make();
      for (const index of indexes) (world.deeds()[index] as Deed)[1]();
      const deeds = world.deeds();
      count = deeds.length;
      if (count === 0) break;
      const [name, act] = deeds[deed] as Deed;
      steps++;
      const taken: Path = { from, deed, name };
      let answer: unknown;
      try {
        answer = act();
      } catch (error) {
        throw new Broken((error as Error).message, taken);
      }
      answers.push(JSON.stringify(answer) ?? 'done');
      visit(world, taken);
    }
    return answers.sort().join(' ');
  };

  try {
    arrive(make(), { from: undefined, deed: -1, name: '' });
    for (let at = 0; at < states.length; at++) {
      const state = states[at] as State;
      const visit = (world: World, path: Path): void => void state.next.push(arrive(world, path).number);
      state.answers = tryAll(state.path, visit, state);
    }
    for (const state of states) {
      if (state.rival === undefined) continue;
      const other = tryAll(state.rival, () => undefined, state);
      if (other === state.answers) continue;
      const first = namesOf(state.path).join(', ');
      throw new Broken(
        `after this: ${other}; but in what should be the same state, after ${first}: ${state.answers}`,
        state.rival,
      );
    }
    const stuck = firstStuck(states);
    if (stuck) throw new Broken('the end cannot be reached from here', stuck.path);
  } catch (error) {
    if (!(error instanceof Broken)) throw error;
    return { ...sizes(states, steps), violation: { what: error.message, trace: namesOf(error.path) } };
  }
  return { ...sizes(states, steps), violation: undefined };
}

function sizes(states: readonly State[], steps: number): Omit<Exploration, 'violation'> {
  return { states: states.length, steps, deepest: states.at(-1)?.depth ?? 0 };
}

function pathsTo(path: Path): Path[] {
  const paths: Path[] = [];
  for (let at = path; at.from !== undefined; at = at.from.path) paths.push(at);
  return paths.reverse();
}

function indexesOf(path: Path): number[] {
  return pathsTo(path).map(({ deed }) => deed);
}

function namesOf(path: Path): string[] {
  return pathsTo(path).map(({ name }) => name);
}

/** The nearest state that no way leads out of to an end. */
function firstStuck(states: readonly State[]): State | undefined {
  const before: number[][] = states.map(() => []);
  for (const { number, next } of states) for (const to of next) before[to]?.push(number);
  const reaches = states.map(({ ended }) => ended);
  const open = states.filter(({ ended }) => ended).map(({ number }) => number);
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    for (const number of before[at] ?? []) {
      if (reaches[number]) continue;
      reaches[number] = true;
      open.push(number);
    }
  }
  return states.find(({ number }) => !reaches[number]);
}

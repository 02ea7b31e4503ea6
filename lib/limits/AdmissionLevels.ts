import { oneOf } from '../core/checks.ts';
import type { Level } from './AdmissionOptions.ts';

/** Where a priority stands, for what goes on after priorities have changed. */
export interface LevelPlace {
  readonly level: number;
  /** Where it has stood since then. */
  movedTo: LevelPlace | undefined;
}

/** The priorities, the most urgent first, and what each of them has in flight. */
export class AdmissionLevels {
  #levels: readonly Level[];
  #names: readonly string[];
  #inFlight: number[];
  /** Of each now, in their order. */
  places: readonly LevelPlace[];
  /** What this process may have of each ceiling, by name, where others share it. */
  readonly lent: Map<string, number> = new Map();

  constructor(levels: readonly Level[]) {
    this.#levels = levels;
    this.#names = levels.map(({ name }) => name);
    this.#inFlight = levels.map(() => 0);
    this.places = placesOf(levels);
  }

  /** In flight of each, in their order. */
  get inFlight(): readonly number[] {
    return this.#inFlight;
  }

  /** Where the priority stands; one that is not named is the most urgent. @throws SluiceError `invalid_option` */
  indexOf(priority: string | undefined): number {
    if (priority === undefined) return 0;
    return this.#names.indexOf(oneOf('priority', priority, this.#names));
  }

  /** Of a place that was taken before priorities have changed too. */
  levelOf(place: LevelPlace): number {
    let last = place;
    while (last.movedTo !== undefined) last = last.movedTo;
    return last.level;
  }

  full(level: number): boolean {
    const { name, maxInFlight } = this.#levels[level] as Level;
    return (this.#inFlight[level] as number) >= Math.min(maxInFlight, this.lent.get(name) ?? Infinity);
  }

  /** Changes what a priority has in flight. */
  move(level: number, inFlight: number): void {
    this.#inFlight[level] = (this.#inFlight[level] as number) + inFlight;
  }

  /**
   * Takes other priorities. Returns where each of those that there were stands now: the same name, or, where that is gone,
   * the same place or the last one, so that none becomes more urgent than it was.
   */
  reload(levels: readonly Level[]): readonly number[] {
    const names = levels.map(({ name }) => name);
    const moved = this.#levels.map(({ name }, place) => {
      const found = names.indexOf(name);
      return found >= 0 ? found : Math.min(place, names.length - 1);
    });
    const inFlight = this.#inFlight;
    const places = placesOf(levels);
    this.places.forEach((place, level) => (place.movedTo = places[moved[level] as number]));
    this.places = places;
    this.#levels = levels;
    this.#names = names;
    this.#inFlight = levels.map(() => 0);
    moved.forEach((level, before) => this.move(level, inFlight[before] as number));
    return moved;
  }
}

function placesOf(levels: readonly Level[]): readonly LevelPlace[] {
  return levels.map((_, level) => ({ level, movedTo: undefined }));
}

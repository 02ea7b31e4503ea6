/**
 * The candidate that `name` is a misspelling of, if there is one: at most a third of its letters wrong, left out, too
 * many or swapped with their neighbour. Case and the characters between words do not count.
 */
export function closest(name: string, candidates: readonly string[]): string | undefined {
  const wanted = bare(name);
  let best: string | undefined;
  let least = Infinity;
  for (const candidate of candidates) {
    const known = bare(candidate);
    const most = Math.floor(Math.max(wanted.length, known.length) / 3);
    // A distance is at least the difference in length, and computing it takes the product of the lengths.
    if (candidate === name || Math.abs(wanted.length - known.length) > most || known.length > LONGEST) continue;
    const distance = distanceOf(wanted, known);
    if (distance <= most && distance < least) [best, least] = [candidate, distance];
  }
  return best;
}

const LONGEST = 100;

function bare(name: string): string {
  return name.toLowerCase().replace(/[\s_-]/g, '');
}

/**
 * Least number of edits from one to the other.
 *
 * Source: optimal string alignment, https://en.wikipedia.org/wiki/Damerau%E2%80%93Levenshtein_distance
 */
function distanceOf(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const swap = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? (beforeLast[j - 2] ?? Infinity) + 1 : Infinity;
      const replace = (last[j - 1] ?? Infinity) + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min((last[j] ?? Infinity) + 1, (row[j - 1] ?? Infinity) + 1, replace, swap));
    }
    [beforeLast, last] = [last, row];
  }
  return last[b.length] ?? Infinity;
}

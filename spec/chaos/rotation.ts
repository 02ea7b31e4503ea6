const DAY_MS = 86_400_000;

/** Seeds that have their turn today, `count` of them: others every day, the same ones all day. */
export function rotation(count: number, wallNowMs: number): readonly [from: number, to: number] {
  // Seeds of the first thousand are those of the full run.
  const from = 1_001 + Math.floor(wallNowMs / DAY_MS) * count;
  return [from, from + count - 1];
}

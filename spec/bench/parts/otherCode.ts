/**
 * Runs so many functions that do little and are all different, as the rest of a service would between two calls: what a
 * processor keeps of code at hand is smaller than what a service runs.
 */
export function otherCode(functions: number): () => number {
  const made = Array.from({ length: functions }, (_, at) => {
    const body = `let a = o.x + ${at}; if (a > 1e9) a -= ${at}; o.y = a ^ ${at * 7}; const t = { p: a, q: o.y }; return t.p + t.q * ${at}`;

    return new Function('o', body) as (o: { x: number; y: number }) => number;
  });
  const fields = { x: 1, y: 2 };
  return () => made.reduce((sum, each) => sum + each(fields), 0);
}

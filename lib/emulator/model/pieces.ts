import type { AnswerPlan, Segment } from './AnswerPlan.ts';

/** The part of a segment that one chunk brings. */
export interface Piece {
  readonly choice: number;
  readonly segment: Segment;
  readonly text: string;
  readonly tokens: number;
  /** First and last piece of its segment. */
  readonly opens: boolean;
  readonly closes: boolean;
  readonly atMs: number;
}

/**
 * The content of an answer in the order it is streamed, made one by one as it is asked for. Choices take turns. With
 * `chunks: 'ends'` each choice brings its first piece, and the rest at the end.
 */
export function pieces(plan: AnswerPlan): Generator<Piece, void> {
  const [only] = plan.choices;
  return only !== undefined && plan.choices.length === 1 ? piecesOf(plan, only, 0) : inTurn(plan);
}

function* inTurn(plan: AnswerPlan): Generator<Piece, void> {
  let open = plan.choices.map((segments, choice) => piecesOf(plan, segments, choice));
  while (open.length > 0) {
    const still: typeof open = [];
    for (const cursor of open) {
      const next = cursor.next();
      if (next.done === true) continue;
      yield next.value;
      still.push(cursor);
    }
    open = still;
  }
}

function* piecesOf(plan: AnswerPlan, segments: readonly Segment[], choice: number): Generator<Piece, void> {
  const { firstTokenMs, tokenMs, chunkTokens } = plan;
  let before = 0;
  for (const segment of segments) {
    const { tokens } = segment;
    let from = 0;
    do {
      const first = before + from === 0;
      const to = plan.chunks === 'all' || first ? Math.min(tokens, from + chunkTokens) : tokens;
      const token = before + (plan.chunks === 'all' || first ? from : Math.max(from, to - 1));
      yield {
        choice,
        segment,
        text: segment.slice(from, to),
        tokens: to - from,
        opens: from === 0,
        closes: to === tokens,
        atMs: firstTokenMs + token * tokenMs,
      };
      from = to;
    } while (from < tokens);
    before += tokens;
  }
}

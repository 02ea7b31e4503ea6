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
  let before = 0;
  for (const segment of segments) {
    let from = 0;
    do {
      const piece = pieceAt(plan, segment, choice, before, from);
      yield piece;
      from += piece.tokens;
    } while (from < segment.tokens);
    before += segment.tokens;
  }
}

/** The piece that begins at a token of a segment. `before`: tokens of the segments before it. */
export function pieceAt(plan: AnswerPlan, segment: Segment, choice: number, before: number, from: number): Piece {
  const { chunks, firstTokenMs, tokenMs, chunkTokens } = plan;
  const { tokens } = segment;
  const short = chunks === 'all' || before + from === 0;
  const to = short ? Math.min(tokens, from + chunkTokens) : tokens;
  const token = before + (short ? from : Math.max(from, to - 1));
  return {
    choice,
    segment,
    text: segment.slice(from, to),
    tokens: to - from,
    opens: from === 0,
    closes: to === tokens,
    atMs: firstTokenMs + token * tokenMs,
  };
}

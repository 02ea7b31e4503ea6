/** One call of the demo's load. */
export interface DemoCall {
  readonly prompt: string;
  /** `undefined` for a call that stands alone. */
  readonly conversation: string | undefined;
  /** From 0 within its conversation. */
  readonly turn: number;
}

/** The classic load: of every ten calls, three belong to one of five conversations; the rest stand alone. */
export function classicLoad(calls: number): DemoCall[] {
  const turns = new Map<string, number>();
  return Array.from({ length: calls }, (_, index) => {
    const talks = index % 10 < 3;
    if (!talks) return { prompt: `Question ${index + 1}`, conversation: undefined, turn: 0 };
    const conversation = `conversation-${(Math.floor(index / 10) * 3 + (index % 10)) % 5}`;
    const turn = turns.get(conversation) ?? 0;
    turns.set(conversation, turn + 1);
    return { prompt: `Turn ${turn + 1}`, conversation, turn };
  });
}

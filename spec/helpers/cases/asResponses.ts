import type { ScriptedAnswer, UpstreamInput } from './upstreamCase.ts';

/** The same script in the words of the Responses API. Errors and comments are left as they are. */
export function asResponses(input: UpstreamInput): UpstreamInput {
  const { script } = input;
  const translated = Array.isArray(script)
    ? (script as readonly ScriptedAnswer[]).map(answer)
    : Object.fromEntries(
        Object.entries(script as Record<string, readonly ScriptedAnswer[]>).map(([model, list]) => [
          model,
          list.map(answer),
        ]),
      );
  return { ...input, script: translated };
}

function answer(step: ScriptedAnswer): ScriptedAnswer {
  return step.sse === undefined ? step : { ...step, sse: step.sse.flatMap(piece) };
}

function piece(sse: string): readonly string[] {
  const data = /^data: (.*)\n\n$/.exec(sse)?.[1];
  if (data === undefined) return [sse];
  if (data === '[DONE]') return [];
  const { choices, error } = JSON.parse(data) as { choices?: Choice[]; error?: unknown };
  const { delta = {}, finish_reason: finish } = choices?.[0] ?? {};
  if (error !== undefined || choices === undefined) return [sse];
  const events: Record<string, unknown>[] = [];
  if (delta['role'] !== undefined) events.push({ type: 'response.created', response: { model: 'm', output: [] } });
  const { content, reasoning_content: reasoning } = delta;
  if (content) events.push({ type: 'response.output_text.delta', item_id: 'i1', output_index: 0, delta: content });
  if (reasoning)
    events.push({ type: 'response.reasoning_text.delta', item_id: 'i0', output_index: 0, delta: reasoning });
  if (finish) events.push({ type: 'response.completed', response: { status: 'completed', output: [] } });
  return events.map((event) => `event: ${String(event['type'])}\ndata: ${JSON.stringify(event)}\n\n`);
}

interface Choice {
  readonly delta?: Readonly<Record<string, unknown>>;
  readonly finish_reason?: string | null;
}

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
  const { choices, error } = parsed(data);
  const choice = choices?.[0];
  if ((error ?? null) !== null || choices === undefined) return [sse];
  return (choice === undefined ? [] : events(choice)).map(
    (event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`,
  );
}

/** What is no chunk is none in either API. */
function parsed(data: string): { readonly choices?: readonly Choice[]; readonly error?: unknown } {
  try {
    return Object(JSON.parse(data)) as { readonly choices?: readonly Choice[] };
  } catch {
    return {};
  }
}

interface Choice {
  readonly delta?: Delta;
  readonly finish_reason?: string | null;
  readonly error?: unknown;
}

interface Delta {
  readonly role?: string;
  readonly content?: string | null;
  readonly reasoning?: string;
  readonly reasoning_content?: string | null;
  readonly refusal?: string;
  readonly tool_calls?: readonly {
    readonly id: string;
    readonly function: { readonly name: string; readonly arguments: string };
  }[];
}

interface Event {
  readonly type: string;
  readonly [field: string]: unknown;
}

function events({ delta = {}, finish_reason: finish, error }: Choice): readonly Event[] {
  const { role, content, reasoning = delta.reasoning_content, refusal, tool_calls: calls = [] } = delta;
  const list: Event[] = [];
  const text = (type: string, item: string, piece: string | null | undefined): void => {
    if (piece) list.push({ type, item_id: item, output_index: 0, delta: piece });
  };
  if (role !== undefined) list.push({ type: 'response.created', response: { model: 'm', output: [] } });
  text('response.output_text.delta', 'i1', content);
  text('response.reasoning_text.delta', 'i0', reasoning);
  text('response.refusal.delta', 'i1', refusal);
  for (const { id, function: called } of calls) {
    const item = { type: 'function_call', id, call_id: id, ...called };
    list.push({ type: 'response.output_item.added', output_index: 1, item });
  }
  if (finish === 'error') {
    const fault = error ?? { code: 'server_error', message: 'it failed' };
    list.push({ type: 'response.failed', response: { status: 'failed', error: fault } });
  } else if (finish) {
    list.push({ type: 'response.completed', response: { status: 'completed', output: [] } });
  }
  return list;
}

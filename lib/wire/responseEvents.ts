import type { ChoiceBuilder } from './ChoiceBuilder.ts';

type Fields = Readonly<Record<string, unknown>>;

/**
 * Adds an event of the Responses API, or a whole response, to a choice. Texts that come whole at the end of a part are
 * taken only where their deltas did not come.
 * @returns Whether it held content.
 */
export function addResponseEvent(choice: ChoiceBuilder, event: Fields): boolean {
  const type = event['type'];
  if (typeof type !== 'string') return event['object'] === 'response' ? addResponse(choice, event) : false;
  switch (type) {
    case 'response.output_text.delta':
      choice.items.sawText();
      return added(event['delta'], (text) => choice.addText(text));
    case 'response.reasoning_text.delta':
    case 'response.reasoning_summary_text.delta':
    case 'response.reasoning.delta':
    case 'response.reasoning_summary.delta':
      return added(event['delta'], (text) => choice.addReasoning(text));
    case 'response.refusal.delta':
      choice.items.sawText();
      return added(event['delta'], (text) => choice.addRefusal(text));
    case 'response.function_call_arguments.delta':
    case 'response.custom_tool_call_input.delta':
    case 'response.mcp_call_arguments.delta':
      return choice.addToolPiece({ id: choice.items.idOf(event), arguments: event['delta'] });
    case 'response.function_call_arguments.done':
    case 'response.custom_tool_call_input.done':
    case 'response.mcp_call_arguments.done':
      return choice.completeCall(choice.items.idOf(event), event['arguments'] ?? event['input']);
    case 'response.output_text.done':
      return choice.items.partEnded() && added(event['text'], (text) => choice.addText(text));
    case 'response.refusal.done':
      return choice.items.partEnded() && added(event['refusal'], (text) => choice.addRefusal(text));
    case 'response.output_item.added':
    case 'response.output_item.done':
      return addItem(choice, event, type.endsWith('done'));
    case 'response.completed':
    case 'response.incomplete':
      return addResponse(choice, event['response']);
    default:
      return added(type.endsWith('.delta') ? event['delta'] : event['partial_image_b64'], () => choice.addOther());
  }
}

/** Items that carry arguments, and the type of their calls; other calls, such as a web search, run at the provider. */
const CALL_TYPES: ReadonlyMap<unknown, string> = new Map([
  ['function_call', 'function'],
  ['custom_tool_call', 'custom'],
  ['mcp_call', 'mcp_call'],
]);

function addItem(choice: ChoiceBuilder, event: Fields, done: boolean): boolean {
  const item = (event['item'] ?? {}) as Fields;
  const { type, name } = item;
  if (typeof type !== 'string' || !type.endsWith('_call')) {
    // Reasoning is repeated in its item too, but only with its summary: its deltas have been taken.
    return done && type === 'message' && choice.items.itemEnded() ? addOutput(choice, item) : false;
  }
  const callType = CALL_TYPES.get(type);
  if (callType === undefined) {
    choice.addOther();
    return true;
  }
  const id = choice.items.note(item, event['output_index']);
  const args = item['arguments'] ?? item['input'];
  if (done && choice.hasCall(id)) return choice.completeCall(id, args);
  return choice.addToolPiece({ id, type: callType, name, arguments: args });
}

/** The whole response: its end, and its output where the events did not bring it. */
function addResponse(choice: ChoiceBuilder, value: unknown): boolean {
  const { status, incomplete_details: details, output, output_text: text } = (value ?? {}) as Fields;
  let held = false;
  if (choice.empty) {
    if (Array.isArray(output)) for (const item of output as unknown[]) held = addOutput(choice, item) || held;
    else held = added(text, (whole) => choice.addText(whole));
  }
  const reason = (details as Fields | null | undefined)?.['reason'];
  if (status === 'incomplete') choice.finish(typeof reason === 'string' ? reason : 'incomplete');
  else if (typeof status === 'string' && status !== 'in_progress' && status !== 'queued') choice.finish(status);
  return held;
}

function addOutput(choice: ChoiceBuilder, value: unknown): boolean {
  const item = (value ?? {}) as Fields;
  if (typeof item['type'] === 'string' && item['type'].endsWith('_call')) return addItem(choice, { item }, true);
  let held = false;
  for (const list of [item['summary'], item['content']]) {
    if (!Array.isArray(list)) continue;
    for (const part of list as unknown[]) {
      const { type, text, refusal } = (part ?? {}) as Fields;
      if (type === 'refusal') held = added(refusal, (words) => choice.addRefusal(words)) || held;
      else if (item['type'] === 'reasoning') held = added(text, (words) => choice.addReasoning(words)) || held;
      else held = added(text, (words) => choice.addText(words)) || held;
    }
  }
  return held;
}

function added(value: unknown, add: (text: string) => void): boolean {
  if (typeof value !== 'string' || value === '') return false;
  add(value);
  return true;
}

import type { AnswerChoice } from '../core/answer.ts';
import type { AttemptContent } from '../core/content.ts';

/** A message as the GenAI conventions write it. */
export interface ContentMessage {
  readonly role: string;
  readonly parts: readonly ContentPart[];
  readonly finish_reason?: string;
}

export interface ContentPart {
  readonly type: string;
  readonly content?: string;
  readonly id?: string;
  readonly name?: string;
  readonly arguments?: string;
  readonly response?: string;
}

type Fields = Readonly<Record<string, unknown>>;

/** What was asked, oldest first. */
export function inputMessages({ api, request }: AttemptContent): readonly ContentMessage[] {
  const said = api === 'chat' ? request['messages'] : request['input'];
  if (typeof said === 'string') return [{ role: 'user', parts: [textPart(said)] }];
  return listOf(said).map(api === 'chat' ? chatMessage : responseItem);
}

/** What was said apart from the messages. */
export function systemInstructions({ request }: AttemptContent): readonly ContentPart[] {
  const { instructions } = request;
  return typeof instructions === 'string' ? [textPart(instructions)] : [];
}

export function toolDefinitions({ request }: AttemptContent): readonly Fields[] {
  return listOf(request['tools']);
}

/** What was answered: one message for each choice. */
export function outputMessages({ answer }: AttemptContent): readonly ContentMessage[] {
  return answer === undefined ? [] : answer.choices.map(choiceMessage);
}

function chatMessage(message: Fields): ContentMessage {
  const { content, refusal, tool_calls: calls, tool_call_id: answered } = message;
  const role = wordOf(message['role'], 'user');
  if (role === 'tool') return { role, parts: [responsePart(answered, content)] };
  return {
    role,
    parts: [
      ...contentParts(content),
      ...(typeof refusal === 'string' ? [textPart(refusal)] : []),
      ...listOf(calls).map((call) => callPart(call['id'], call['function'] ?? call['custom'])),
    ],
  };
}

function responseItem(item: Fields): ContentMessage {
  switch (item['type']) {
    case 'function_call':
    case 'custom_tool_call':
      return { role: 'assistant', parts: [callPart(item['call_id'], item)] };
    case 'function_call_output':
    case 'custom_tool_call_output':
      return { role: 'tool', parts: [responsePart(item['call_id'], item['output'])] };
    default:
      return { role: wordOf(item['role'], 'assistant'), parts: contentParts(item['content']) };
  }
}

function choiceMessage({ text, reasoning, refusal, toolCalls, finishReason }: AnswerChoice): ContentMessage {
  const parts: ContentPart[] = [];
  if (reasoning !== '') parts.push({ type: 'reasoning', content: reasoning });
  if (text !== '') parts.push(textPart(text));
  if (refusal !== '') parts.push(textPart(refusal));
  for (const call of toolCalls) parts.push(callPart(call.id, call));
  // By the conventions, a choice that was broken off has the reason `error`.
  return { role: 'assistant', parts, finish_reason: finishReason ?? 'error' };
}

/** Of pictures, sounds and files only that they were there. */
function contentParts(content: unknown): readonly ContentPart[] {
  if (typeof content === 'string') return [textPart(content)];
  return listOf(content).map((part) => {
    const text = part['text'] ?? part['refusal'];
    return typeof text === 'string' ? textPart(text) : { type: wordOf(part['type'], 'unknown') };
  });
}

function textPart(content: string): ContentPart {
  return { type: 'text', content };
}

function callPart(id: unknown, called: unknown): ContentPart {
  const { name, arguments: given, input } = Object(called) as Fields;
  const text = given ?? input;
  return {
    type: 'tool_call',
    ...(typeof id === 'string' && { id }),
    ...(typeof name === 'string' && { name }),
    ...(typeof text === 'string' && { arguments: text }),
  };
}

function responsePart(id: unknown, response: unknown): ContentPart {
  const text = typeof response === 'string' ? response : JSON.stringify(response ?? null);
  return { type: 'tool_call_response', ...(typeof id === 'string' && { id }), response: text };
}

function listOf(value: unknown): readonly Fields[] {
  if (!Array.isArray(value)) return [];
  return value.filter((item): item is Fields => typeof item === 'object' && item !== null);
}

function wordOf(value: unknown, otherwise: string): string {
  return typeof value === 'string' ? value : otherwise;
}

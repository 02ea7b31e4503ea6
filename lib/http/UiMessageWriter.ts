import type { AnswerEvent, ToolCallPiece } from './AnswerEvent.ts';
import { encodeServerSentEvent } from './ServerSentEvent.ts';

/** A part of the AI SDK's UI message stream, as its `UIMessageChunk`: those that an answer of a model can be made of. */
export type UiMessageChunk =
  | { readonly type: 'start' | 'start-step' | 'reset-step' | 'finish-step' }
  | { readonly type: 'text-start' | 'text-end' | 'reasoning-start' | 'reasoning-end'; readonly id: string }
  | { readonly type: 'text-delta' | 'reasoning-delta'; readonly id: string; readonly delta: string }
  | { readonly type: 'tool-input-start'; readonly toolCallId: string; readonly toolName: string }
  | { readonly type: 'tool-input-delta'; readonly toolCallId: string; readonly inputTextDelta: string }
  | {
      readonly type: 'tool-input-available';
      readonly toolCallId: string;
      readonly toolName: string;
      readonly input: unknown;
    }
  | {
      readonly type: 'tool-input-error';
      readonly toolCallId: string;
      readonly toolName: string;
      readonly input: unknown;
      readonly errorText: string;
    }
  | { readonly type: 'message-metadata'; readonly messageMetadata: unknown }
  | { readonly type: 'finish'; readonly finishReason: UiFinishReason }
  | { readonly type: 'error'; readonly errorText: string };

export type UiFinishReason = 'stop' | 'length' | 'content-filter' | 'tool-calls' | 'error' | 'other';

const FINISH_REASONS: Readonly<Record<string, UiFinishReason>> = {
  stop: 'stop',
  completed: 'stop',
  length: 'length',
  max_output_tokens: 'length',
  content_filter: 'content-filter',
  tool_calls: 'tool-calls',
  function_call: 'tool-calls',
};

interface OpenCall {
  readonly id: string;
  name: string;
  arguments: string;
  started: boolean;
}

/**
 * Writes one answer as the AI SDK reads it. That stream knows one choice: of others nothing is told. A refusal is text
 * there.
 *
 * Source: https://ai-sdk.dev/docs/ai-sdk-ui/stream-protocol
 */
export class UiMessageWriter {
  #chunks: UiMessageChunk[] = [];
  #started = false;
  #open: { readonly kind: 'text' | 'reasoning'; readonly id: string } | undefined;
  #parts = 0;
  #calls: OpenCall[] = [];

  chunks(event: AnswerEvent): readonly UiMessageChunk[] {
    if (!this.#started) {
      this.#started = true;
      this.#chunks.push({ type: 'start' }, { type: 'start-step' });
    }
    this.#add(event);
    const chunks = this.#chunks;
    this.#chunks = [];
    return chunks;
  }

  encode(event: AnswerEvent): string {
    let text = '';
    for (const chunk of this.chunks(event)) text += encodeServerSentEvent({ data: JSON.stringify(chunk) });
    const last = event.type === 'done' || event.type === 'failure';
    return last ? `${text}${encodeServerSentEvent({ data: '[DONE]' })}` : text;
  }

  #add(event: AnswerEvent): void {
    switch (event.type) {
      case 'delta':
      case 'refusal':
        if (event.data.index === 0) this.#text('text', event.data.text);
        return;
      case 'reasoning':
        if (event.data.index === 0) this.#text('reasoning', event.data.text);
        return;
      case 'tool_call':
        if (event.data.index === 0) this.#toolCall(event.data);
        return;
      case 'usage':
        this.#chunks.push({ type: 'message-metadata', messageMetadata: { usage: event.data } });
        return;
      case 'reset':
        this.#open = undefined;
        this.#calls = [];
        this.#chunks.push({ type: 'reset-step' });
        return;
      case 'done':
        this.#finish(event.data.finishReason);
        return;
      case 'failure':
        this.#close();
        this.#chunks.push({ type: 'error', errorText: event.data.error.message });
    }
  }

  #text(kind: 'text' | 'reasoning', delta: string): void {
    if (this.#open?.kind !== kind) {
      this.#close();
      this.#open = { kind, id: String(++this.#parts) };
      this.#chunks.push({ type: `${kind}-start`, id: this.#open.id });
    }
    this.#chunks.push({ type: `${kind}-delta`, id: this.#open.id, delta });
  }

  #close(): void {
    if (this.#open) this.#chunks.push({ type: `${this.#open.kind}-end`, id: this.#open.id });
    this.#open = undefined;
  }

  #toolCall({ call: at, id, name, arguments: args }: ToolCallPiece): void {
    this.#close();
    const call = (this.#calls[at] ??= { id: id ?? `call-${at}`, name: '', arguments: '', started: false });
    call.name = name ?? call.name;
    call.arguments += args;
    if (!call.started) {
      // The name may come in pieces, and is whole when the arguments begin.
      if (call.arguments === '') return;
      call.started = true;
      this.#chunks.push({ type: 'tool-input-start', toolCallId: call.id, toolName: call.name });
    }
    const inputTextDelta = args === '' ? '' : args;
    if (inputTextDelta !== '') this.#chunks.push({ type: 'tool-input-delta', toolCallId: call.id, inputTextDelta });
  }

  #finish(finishReason: string | null): void {
    this.#close();
    for (const call of this.#calls) this.#toolInput(call);
    const reason = finishReason === null ? 'other' : (FINISH_REASONS[finishReason] ?? 'other');
    // The Responses API calls an answer that asks for tools complete, like any other.
    const asks = reason === 'stop' && this.#calls.length > 0;
    this.#chunks.push({ type: 'finish-step' }, { type: 'finish', finishReason: asks ? 'tool-calls' : reason });
  }

  #toolInput({ id: toolCallId, name: toolName, arguments: args }: OpenCall): void {
    try {
      const input: unknown = args === '' ? {} : JSON.parse(args);
      this.#chunks.push({ type: 'tool-input-available', toolCallId, toolName, input });
    } catch {
      const errorText = 'the arguments are no JSON';
      this.#chunks.push({ type: 'tool-input-error', toolCallId, toolName, input: args, errorText });
    }
  }
}

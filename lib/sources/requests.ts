import type { ChatCompletionCreateParamsNonStreaming } from 'openai/resources/chat/completions';
import type { ResponseCreateParamsNonStreaming } from 'openai/resources/responses/responses';

/** The SDK's own parameters of a chat completion. `stream` is set by the source; a value that contradicts it is refused. */
export type ChatRequest = Omit<ChatCompletionCreateParamsNonStreaming, 'stream'> & { stream?: boolean | null };

/** The SDK's own parameters of a response. `stream` is set by the source; a value that contradicts it is refused. */
export type ResponseRequest = Omit<ResponseCreateParamsNonStreaming, 'stream'> & { stream?: boolean | null };

import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, jsonSchema, streamText, tool as toolOf } from 'ai';

const tools = {
  weather: toolOf({
    inputSchema: jsonSchema({ type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }),
  }),
};

/** The AI SDK, with its provider for servers like this one. */
export function aiSdk(baseURL) {
  const provider = createOpenAICompatible({ name: 'gateway', baseURL, apiKey: 'none', includeUsage: true });
  return {
    async ask({ stream, tool, signal, onText }) {
      const call = {
        model: provider('m'),
        prompt: 'How is the weather in Oslo?',
        maxRetries: 0,
        abortSignal: signal,
        ...(tool && { tools }),
      };
      if (!stream) return said(await generateText(call));
      let failure;
      const result = streamText({ ...call, onError: ({ error }) => (failure = error) });
      for await (const part of result.fullStream) if (part.type === 'text-delta') onText?.();
      if (failure !== undefined) throw failure;
      const [text, toolCalls, usage] = await Promise.all([result.text, result.toolCalls, result.usage]);
      return said({ text, toolCalls, usage });
    },
    raised: (thrown) => ({ type: thrown?.name, status: thrown?.statusCode }),
  };
}

function said({ text, toolCalls, usage }) {
  return {
    text,
    toolCalls: toolCalls.map(({ toolName, input }) => ({ name: toolName, arguments: input })),
    inputTokens: usage.inputTokens,
    outputTokens: usage.outputTokens,
  };
}

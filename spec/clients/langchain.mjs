import { ChatOpenAI } from '@langchain/openai';
import { raised } from './openaiClient.mjs';

const weather = {
  type: 'function',
  function: {
    name: 'weather',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
};

/** LangChain's chat model. */
export function langchain(baseURL) {
  const plain = new ChatOpenAI({ model: 'm', apiKey: 'none', maxRetries: 0, configuration: { baseURL } });
  const withTool = plain.bindTools([weather]);
  return {
    async ask({ stream, tool, signal, onText }) {
      const model = tool ? withTool : plain;
      if (!stream) return said(await model.invoke('How is the weather in Oslo?', { signal }));
      let whole;
      for await (const part of await model.stream('How is the weather in Oslo?', { signal })) {
        whole = whole === undefined ? part : whole.concat(part);
        if (part.content) onText?.();
      }
      return said(whole);
    },
    raised,
  };
}

function said({ content, tool_calls: calls = [], usage_metadata: usage }) {
  return {
    text: String(content),
    toolCalls: calls.map(({ name, args }) => ({ name, arguments: args })),
    inputTokens: usage?.input_tokens,
    outputTokens: usage?.output_tokens,
  };
}

const messages = [{ role: 'user', content: 'How is the weather in Oslo?' }];
const tools = [
  {
    type: 'function',
    function: {
      name: 'weather',
      parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    },
  },
];

/** How applications use the SDK itself. */
export function openaiClient(OpenAI, baseURL) {
  const client = new OpenAI({ baseURL, apiKey: 'none', maxRetries: 0 });
  const request = (tool) => ({ model: 'm', messages, ...(tool && { tools }) });
  return {
    async ask({ stream, tool, signal, onText }) {
      if (!stream) {
        const { choices, usage } = await client.chat.completions.create(request(tool), { signal });
        return said(choices[0].message.content ?? '', choices[0].message.tool_calls ?? [], usage);
      }
      const chunks = await client.chat.completions.create(
        { ...request(tool), stream: true, stream_options: { include_usage: true } },
        { signal },
      );
      let text = '';
      let usage;
      const calls = [];
      for await (const chunk of chunks) {
        usage = chunk.usage ?? usage;
        const { content, tool_calls: parts = [] } = chunk.choices[0]?.delta ?? {};
        for (const { index, function: part } of parts) {
          calls[index] ??= { function: { name: '', arguments: '' } };
          calls[index].function.name += part?.name ?? '';
          calls[index].function.arguments += part?.arguments ?? '';
        }
        if (!content) continue;
        text += content;
        onText?.();
      }
      return said(text, calls, usage);
    },
    raised,
  };
}

/** @param {unknown} thrown */
export function raised(thrown) {
  return { type: thrown?.constructor?.name, status: thrown?.status };
}

function said(text, calls, usage) {
  return {
    text,
    toolCalls: calls.map(({ function: call }) => ({ name: call.name, arguments: JSON.parse(call.arguments) })),
    inputTokens: usage?.prompt_tokens,
    outputTokens: usage?.completion_tokens,
  };
}

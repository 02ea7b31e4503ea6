import { Agent, OpenAIChatCompletionsModel, Runner, setTracingDisabled, tool as toolOf } from '@openai/agents';
import { OpenAI } from 'openai';
import { raised } from './openaiClient.mjs';

setTracingDisabled(true);

/** OpenAI's agents, over chat completions. A tool is called, and what it says is asked about in a second request. */
export function agents(baseURL) {
  const client = new OpenAI({ baseURL, apiKey: 'none', maxRetries: 0 });
  const runner = new Runner({ tracingDisabled: true });
  return {
    async ask({ stream, tool, signal, onText }) {
      const toolCalls = [];
      const weather = toolOf({
        name: 'weather',
        description: 'Tells the weather.',
        parameters: {
          type: 'object',
          properties: { city: { type: 'string' } },
          required: ['city'],
          additionalProperties: false,
        },
        strict: true,
        execute(args) {
          toolCalls.push({ name: 'weather', arguments: args });
          return 'Rain.';
        },
      });
      const agent = new Agent({
        name: 'a',
        model: new OpenAIChatCompletionsModel(client, 'm'),
        tools: tool ? [weather] : [],
      });
      const question = 'How is the weather in Oslo?';
      if (!stream) return said(await runner.run(agent, question, { signal }), toolCalls);
      const result = await runner.run(agent, question, { stream: true, signal });
      for await (const event of result) {
        if (event.type === 'raw_model_stream_event' && event.data.type === 'output_text_delta') onText?.();
      }
      await result.completed;
      signal?.throwIfAborted();
      return said(result, toolCalls);
    },
    raised,
  };
}

function said(result, toolCalls) {
  const { usage } = result.state;
  return {
    text: String(result.finalOutput ?? ''),
    toolCalls,
    inputTokens: usage?.inputTokens,
    outputTokens: usage?.outputTokens,
  };
}

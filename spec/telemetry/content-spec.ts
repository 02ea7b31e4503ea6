import { expect } from 'chai';
import type { Observable } from 'rxjs';
import { createSluice } from '../../lib/client/createSluice.ts';
import type { PolicyInput } from '../../lib/policy/PolicyInput.ts';
import { openTelemetry } from '../../lib/telemetry/openTelemetry.ts';
import type { OpenTelemetryOptions } from '../../lib/telemetry/openTelemetry.ts';
import { virtualRuntime } from '../../lib/testing/index.ts';
import { fakeProvider } from '../helpers/fakeProvider.ts';
import type { Reply } from '../helpers/fakeProvider.ts';
import { withOtelEnvironment } from '../helpers/otelEnvironment.ts';
import { tracing, unknownNames } from '../helpers/tracing.ts';
import type { Tracing } from '../helpers/tracing.ts';

const CONTENT = [
  'gen_ai.input.messages',
  'gen_ai.output.messages',
  'gen_ai.system_instructions',
  'gen_ai.tool.definitions',
];

describe('content on spans', () => {
  let traces: Tracing;
  beforeEach(() => {
    traces = tracing();
  });
  afterEach(() => {
    expect(unknownNames(traces.spans)).to.deep.equal([]);
    traces.stop();
  });

  type Ask = (sluice: ReturnType<typeof createSluice>) => Observable<unknown>;
  const hello: Ask = (sluice) => sluice.chat({ model: 'a', messages: [{ role: 'user', content: 'PROMPT' }] });

  function attributesOf(
    options: OpenTelemetryOptions,
    policy: PolicyInput = {},
    ask = hello,
    replies: readonly Reply[] = [{ text: 'ANSWER' }],
  ): Record<string, unknown> {
    const runtime = virtualRuntime();
    const provider = fakeProvider(runtime, (_model, index) => replies[Math.min(index, replies.length - 1)] ?? {});
    const telemetry = openTelemetry({ tracerProvider: traces.provider, ...options });
    ask(createSluice(provider.source, policy, { runtime, telemetry })).subscribe({ error: () => {} });
    runtime.run();
    return (traces.spans.at(-1)?.attributes ?? {}) as Record<string, unknown>;
  }
  const parsed = (attributes: Record<string, unknown>, name: string): unknown => JSON.parse(String(attributes[name]));

  it('is not there unless it was let in', () => {
    const attributes = attributesOf({});
    expect(attributes).to.not.have.any.keys(...CONTENT);
    expect(JSON.stringify(traces.spans.map((span) => [span.attributes, span.events]))).to.not.match(/PROMPT|ANSWER/);
  });

  it('is let in by the option, the policy or the variable, and the option has the last word', async () => {
    const variable = 'OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT';
    const on = (options: OpenTelemetryOptions, policy?: PolicyInput): boolean =>
      'gen_ai.input.messages' in attributesOf(options, policy);
    expect(on({ captureContent: true })).to.equal(true);
    expect(on({}, { telemetry: { captureContent: true } })).to.equal(true);
    expect(on({ captureContent: false }, { telemetry: { captureContent: true } })).to.equal(false);
    for (const value of ['true', 'TRUE', 'span_only', 'span_and_event']) {
      await withOtelEnvironment({ [variable]: value }, async () => {
        expect(on({}), value).to.equal(true);
        expect(on({ captureContent: false }), value).to.equal(false);
      });
    }
    for (const value of ['false', 'event_only', 'no_content', '']) {
      await withOtelEnvironment({ [variable]: value }, async () => {
        expect(on({}), value).to.equal(false);
      });
    }
  });

  it('is on the span of the call only, with roles and parts', () => {
    const attributes = attributesOf({ captureContent: true });
    expect(parsed(attributes, 'gen_ai.input.messages')).to.deep.equal([
      { role: 'user', parts: [{ type: 'text', content: 'PROMPT' }] },
    ]);
    expect(parsed(attributes, 'gen_ai.output.messages')).to.deep.equal([
      { role: 'assistant', parts: [{ type: 'text', content: 'ANSWER' }], finish_reason: 'stop' },
    ]);
    expect(traces.spans.filter((span) => CONTENT.some((name) => name in span.attributes))).to.have.length(1);
  });

  it('shows tools, their calls and what they returned', () => {
    const attributes = attributesOf({ captureContent: true }, {}, (sluice) =>
      sluice.chat({
        model: 'a',
        messages: [
          { role: 'system', content: 'RULES' },
          {
            role: 'user',
            content: [
              { type: 'text', text: 'look' },
              { type: 'image_url', image_url: { url: 'data:x' } },
            ],
          },
          {
            role: 'assistant',
            tool_calls: [{ id: 't1', type: 'function', function: { name: 'find', arguments: '{"q":1}' } }],
          },
          { role: 'tool', tool_call_id: 't1', content: 'found' },
        ],
        tools: [{ type: 'function', function: { name: 'find', description: 'Finds.' } }],
      }),
    );
    expect(parsed(attributes, 'gen_ai.input.messages')).to.deep.equal([
      { role: 'system', parts: [{ type: 'text', content: 'RULES' }] },
      { role: 'user', parts: [{ type: 'text', content: 'look' }, { type: 'image_url' }] },
      { role: 'assistant', parts: [{ type: 'tool_call', id: 't1', name: 'find', arguments: '{"q":1}' }] },
      { role: 'tool', parts: [{ type: 'tool_call_response', id: 't1', response: 'found' }] },
    ]);
    expect(parsed(attributes, 'gen_ai.tool.definitions')).to.deep.equal([
      { type: 'function', function: { name: 'find', description: 'Finds.' } },
    ]);
  });

  it('reads requests of the Responses API', () => {
    const attributes = attributesOf({ captureContent: true }, {}, (sluice) =>
      sluice.respond({
        model: 'a',
        instructions: 'RULES',
        input: [
          { role: 'user', content: [{ type: 'input_text', text: 'PROMPT' }] },
          { type: 'function_call', call_id: 't1', name: 'find', arguments: '{}' },
          { type: 'function_call_output', call_id: 't1', output: 'found' },
        ],
      }),
    );
    expect(parsed(attributes, 'gen_ai.system_instructions')).to.deep.equal([{ type: 'text', content: 'RULES' }]);
    expect(parsed(attributes, 'gen_ai.input.messages')).to.deep.equal([
      { role: 'user', parts: [{ type: 'text', content: 'PROMPT' }] },
      { role: 'assistant', parts: [{ type: 'tool_call', id: 't1', name: 'find', arguments: '{}' }] },
      { role: 'tool', parts: [{ type: 'tool_call_response', id: 't1', response: 'found' }] },
    ]);
  });

  it('is that of the last attempt, as far as it came', () => {
    const policy = { models: { default: { retry: { attempts: 1 } } } };
    const cut: Reply = { text: 'PART', error: 'stream_truncated' };
    const attributes = attributesOf({ captureContent: true }, policy, hello, [cut]);
    expect(parsed(attributes, 'gen_ai.output.messages')).to.deep.equal([
      { role: 'assistant', parts: [{ type: 'text', content: 'PART' }], finish_reason: 'error' },
    ]);
  });

  it('passes the hook first, text by text', () => {
    const kinds = new Set<string>();
    const attributes = attributesOf({
      captureContent: true,
      redact: (text, kind) => {
        kinds.add(kind);
        return text.replace('PROMPT', '***');
      },
    });
    expect(parsed(attributes, 'gen_ai.input.messages')).to.deep.equal([
      { role: 'user', parts: [{ type: 'text', content: '***' }] },
    ]);
    expect([...kinds]).to.have.members(['input', 'output']);
  });

  it('stays away where the hook throws', () => {
    const redact = (): never => {
      throw new Error('hook');
    };
    expect(attributesOf({ captureContent: true, redact })).to.not.have.any.keys(...CONTENT);
  });

  it('is cut to its bound, the oldest first, and stays JSON', () => {
    const messages = [1, 2, 3].map((n) => ({ role: 'user' as const, content: String(n).repeat(100) }));
    const attributes = attributesOf({ captureContent: true, maxContentChars: 420 }, {}, (sluice) =>
      sluice.chat({ model: 'a', messages }),
    );
    const kept = parsed(attributes, 'gen_ai.input.messages') as { parts: { content: string }[] }[];
    expect(kept.map(({ parts }) => parts[0]?.content.slice(0, 1))).to.deep.equal(['2', '3']);
    expect(kept[1]?.parts[0]?.content).to.have.length(100);
    expect(kept[0]?.parts[0]?.content).to.match(/^2+…$/);
    expect(attributes).to.include({ 'sluice.content.truncated': true });
    expect(() => openTelemetry({ maxContentChars: 0 }))
      .to.throw()
      .with.property('code', 'invalid_option');
    expect(() => openTelemetry({ redact: 1 as never }))
      .to.throw()
      .with.property('code', 'invalid_option');
  });
});

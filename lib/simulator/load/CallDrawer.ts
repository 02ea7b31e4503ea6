import { sample } from '../../emulator/model/distribution.ts';
import type { ChatRequest } from '../../sources/requests.ts';
import { SCENARIO_DEFAULTS } from '../scenario/Scenario.ts';
import type { Load, TraceCall } from '../scenario/Scenario.ts';

/** One call of a scenario: what is asked, by whom, and how long they wait for it. */
export interface SimulatedCall {
  readonly ordinal: number;
  /** The ordinal as its requests carry it. */
  readonly key: string;
  readonly model: string;
  readonly request: ChatRequest;
  readonly tenant: string | undefined;
  readonly priority: string | undefined;
  readonly conversation: string | undefined;
  readonly deadlineMs: number | undefined;
  readonly leavesAfterMs: number;
}

/** Tokens of framing that a provider counts for a message. */
const FRAMING_TOKENS = 4;
const CHARS_PER_TOKEN = 4;
const NOTHING = {};
/** Prompts that are kept, to be asked again. */
const MOST_PROMPTS = 20_000;
// Prompts are slices of one text: a long one costs no memory of its own.
const SENTENCE = 'The gate is opened a little, and what has gathered behind it goes on its way. ';
let text = SENTENCE;

/** Draws what the calls of one load ask for. */
export class CallDrawer {
  readonly #load: Load;
  readonly #random: () => number;
  readonly #prefix: string;
  /** By their length. Frozen, so that what is known of one holds when it is asked again. */
  readonly #prompts = new Map<number, ChatRequest['messages']>();

  /** `name`: unique among the loads of a scenario. */
  constructor(load: Load, name: string, random: () => number) {
    this.#load = load;
    this.#prefix = name;
    this.#random = random;
  }

  draw(ordinal: number, given: Partial<TraceCall> = NOTHING): SimulatedCall {
    const { model, tenant, priority, outputLimit, deadlineMs, leavesAfterMs } = this.#load;
    const promptTokens =
      given.promptTokens ?? sample(this.#load.promptTokens ?? SCENARIO_DEFAULTS.promptTokens, this.#random);
    const limit = given.outputTokens ?? outputLimit;
    const asked = given.model ?? model;
    const key = String(ordinal);
    const [messages, metadata] = [this.#messages(Math.round(promptTokens)), { call: key }];
    return {
      ordinal,
      key,
      model: asked,
      request:
        limit === undefined
          ? { model: asked, messages, metadata }
          : { model: asked, messages, metadata, max_completion_tokens: Math.max(1, Math.round(limit)) },
      tenant: given.tenant ?? tenant,
      priority: given.priority ?? priority,
      conversation: given.conversation ?? this.#conversation(),
      deadlineMs,
      leavesAfterMs: leavesAfterMs === undefined ? Infinity : sample(leavesAfterMs, this.#random),
    };
  }

  #messages(tokens: number): ChatRequest['messages'] {
    let messages = this.#prompts.get(tokens);
    if (messages !== undefined) return messages;
    if (this.#prompts.size >= MOST_PROMPTS) this.#prompts.clear();
    messages = [Object.freeze({ role: 'user', content: promptOf(tokens) })];
    this.#prompts.set(tokens, Object.freeze(messages) as ChatRequest['messages']);
    return messages;
  }

  #conversation(): string | undefined {
    const { conversations } = this.#load;
    if (conversations === undefined || this.#random() >= conversations.share) return undefined;
    return `${this.#prefix}-${Math.floor(this.#random() * conversations.count)}`;
  }
}

/** A text that counts as so many whole tokens. */
function promptOf(tokens: number): string {
  const length = Math.max(1, tokens - FRAMING_TOKENS) * CHARS_PER_TOKEN;
  while (text.length < length) text += text;
  return text.slice(0, length);
}

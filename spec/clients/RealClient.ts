/** What an application gets of an answer through a client. */
export interface Said {
  readonly text: string;
  readonly toolCalls: readonly { readonly name: string; readonly arguments: unknown }[];
  readonly inputTokens: number | undefined;
  readonly outputTokens: number | undefined;
}

export interface Question {
  readonly stream: boolean;
  /** Offers the function `weather`, of one text `city`. */
  readonly tool?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Hears each piece of text as it comes. */
  readonly onText?: (() => void) | undefined;
}

/** What a client raises. */
export interface Raised {
  /** The name of its class. */
  readonly type: string;
  readonly status: number | undefined;
}

/** One way that applications talk to an OpenAI-compatible server. Its own retries are off. */
export interface RealClient {
  readonly name: string;
  /** Folder of spec/clients/node_modules that it needs; none if the root package has it. */
  readonly needs: string | undefined;
  /** Whose error classes it raises. */
  readonly family: 'openai' | 'ai';
  open(baseURL: string): Promise<AskClient>;
}

export interface AskClient {
  ask(question: Question): Promise<Said>;
  raised(thrown: unknown): Raised;
}

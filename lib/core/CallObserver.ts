import type { ServerAddress } from './attempt.ts';
import type { ContentListener } from './content.ts';
import type { EventListener } from './events.ts';

/** What is known of a call when it starts. */
export interface CallStart {
  readonly callId: string;
  /** `undefined` for a call that brings its own transport. */
  readonly api: 'chat' | 'responses' | undefined;
  /** The model that is asked first; `undefined` where only the first attempt will tell. */
  readonly model: string | undefined;
  readonly stream: boolean;
  /** Where the first attempt is likely to be sent to. */
  readonly server: ServerAddress | undefined;
  readonly tenant: string | undefined;
  readonly conversation: string | undefined;
  readonly priority: string | undefined;
  /** How the request asks to be answered, by the names of chat completions; holds no message. */
  readonly parameters: CallParameters;
  /** What the application says of the call. */
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  /** Whether the policy lets content into telemetry. */
  readonly captureContent: boolean;
  /** Monotonic milliseconds. */
  readonly atMs: number;
  /** The same instant, in milliseconds since the Unix epoch. */
  readonly wallAtMs: number;
}

export type CallParameters = Readonly<Record<string, number | string | readonly string[]>>;

/** Runs `work` with `argument`, as if in the place that a call was started from. Takes both, so that no value needs a closure. */
export type Home = <A, R>(work: (argument: A) => R, argument: A) => R;

/** What an observer does about one call. */
export interface ObservedCall {
  /** Hears the facts of this call. */
  readonly onEvent?: EventListener | undefined;
  /** Runs what sends an attempt, right after its `attempt.started`. Must call `work` once and return its result. */
  readonly around?: (<R>(work: () => R) => R) | undefined;
  /**
   * Runs everything of the call that something else may have set off, such as a place in a queue that another call left,
   * and all that its consumer hears. Must call `work` once and return its result.
   */
  readonly home?: Home | undefined;
  /** Hears what was asked and answered. Only where content is to be captured: its presence makes it exist. */
  readonly onContent?: ContentListener | undefined;
}

/** Observes the calls of a client, such as for tracing. What it throws is ignored. */
export interface CallObserver {
  /**
   * A call is being subscribed to; runs in the tick, and so in the context, of its consumer, and in the frame of the call.
   * May return what it does about this call alone.
   */
  readonly onCall?: ((call: CallStart) => ObservedCall | undefined) | ((call: CallStart) => void) | undefined;
  /** Hears every fact of every call. */
  readonly onEvent?: EventListener | undefined;
  /** Runs what sends an attempt inside something, such as a trace context. Must call `work` once and return its result. */
  readonly around?:
    (<R>(attempt: { readonly callId: string; readonly attempt: number }, work: () => R) => R) | undefined;
}

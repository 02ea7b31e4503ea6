import { startTimer } from '../../../lib/index.ts';
import { PROMPT_MARK } from '../plan/requestOf.ts';
import type { Sabotage } from './Sabotage.ts';

// What each of these breaks where there is a network, an invariant has to find.

/** The gateway sends what it writes second twice. */
export const repeatsAFrame: Sabotage = {
  gateway: (listener) => (request, response) => {
    let writes = 0;
    const write = response.write.bind(response) as (text: string) => boolean;
    response.write = ((text: string) => write(++writes === 2 ? text + text : text)) as typeof response.write;
    listener(request, response);
  },
};

/** The gateway hears much too late that its client has gone. */
export const servesNobody: Sabotage = {
  gateway: (listener, runtime) => (request, response) => {
    const emit = response.emit.bind(response) as (name: string, ...values: unknown[]) => boolean;
    response.emit = ((name: string, ...values: unknown[]) => {
      if (name !== 'close') return emit(name, ...values);
      // By the time of the plan, which hardly moves on a busy machine.
      startTimer(runtime, 700, () => void emit(name, ...values));
      return true;
    }) as typeof response.emit;
    listener(request, response);
  },
};

/** The gateway does not hear what its client says of streams that break off. */
export const mishearsTheMode: Sabotage = {
  gateway: (listener) => (request, response) => {
    delete request.headers['x-sluice-mid-stream'];
    listener(request, response);
  },
};

/** Does with the frames of a stream, by their numbers, what `change` says. */
const overFrames = (
  fetch: typeof globalThis.fetch,
  change: (frame: string, index: number) => string,
  end = '',
): typeof globalThis.fetch => {
  return async (input, init) => {
    const response = await fetch(input, init);
    const { body, headers, status } = response;
    if (body === null || headers.get('content-type')?.includes('event-stream') !== true) return response;
    let held = '';
    let frames = 0;
    const changed = new TransformStream<string, string>({
      transform(text, controller) {
        const [last = '', ...whole] = (held + text).split('\n\n').reverse();
        held = last;
        for (const frame of whole.reverse()) controller.enqueue(change(`${frame}\n\n`, frames++));
      },
      flush(controller) {
        controller.enqueue(held + end);
      },
    });
    const text = body.pipeThrough(new TextDecoderStream()).pipeThrough(changed);
    return new Response(text.pipeThrough(new TextEncoderStream()), { status, headers });
  };
};

const again = (frame: string, index: number): string => (index === 2 ? frame + frame : frame);
const less = (frame: string, index: number): string => (index === 2 ? '' : frame);

export const hearsAChunkTwice: Sabotage = { network: (fetch) => overFrames(fetch, again) };
export const missesAChunk: Sabotage = { network: (fetch) => overFrames(fetch, less) };
export const givesAnSdkAChunkTwice: Sabotage = { fetch: (fetch) => overFrames(fetch, again) };
export const keepsAChunkFromAnSdk: Sabotage = { fetch: (fetch) => overFrames(fetch, less) };

/** Adds to what is cut what makes it whole. */
export const completesWhatIsCut: Sabotage = {
  network: (fetch) =>
    overFrames(
      fetch,
      (frame) => frame,
      'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
    ),
};

/** What an SDK aborts goes on. */
export const doesNotHearAnAbort: Sabotage = {
  fetch: (fetch) => (input, init) => fetch(input, { ...init, signal: null }),
};

/** An SDK is not told that everything has been tried. */
export const letsAnSdkTryAgain: Sabotage = {
  fetch: (fetch) => async (input, init) => {
    const response = await fetch(input, init);
    response.headers.delete('x-should-retry');
    response.headers.set('retry-after-ms', '1');
    return response;
  },
};

/** What was asked is the name of the conversation. */
export const namesATalkByItsPrompt: Sabotage = { options: (options) => ({ ...options, conversation: PROMPT_MARK }) };

/** Keeps a listener on the signal of a caller. */
export const listensForEver: Sabotage = {
  options: (options) => {
    options.signal?.addEventListener('abort', () => {});
    return options;
  },
};

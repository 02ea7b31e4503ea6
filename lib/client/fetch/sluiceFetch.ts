import { tap } from 'rxjs';
import type { AttemptSource } from '../../core/attempt.ts';
import { isSluiceError } from '../../core/errors.ts';
import type { SluiceError } from '../../core/errors.ts';
import { runAtPace } from '../../core/pace.ts';
import { modelPolicy } from '../../policy/modelPolicy.ts';
import { attemptStream } from '../../sources/attemptStream.ts';
import { isSentBySource } from '../../sources/captureFailures.ts';
import { openaiTransport } from '../../sources/openaiTransport.ts';
import { discard } from '../../sources/readBounded.ts';
import { classifyThrown } from '../../wire/classify.ts';
import { attemptOptionsOf, sourceOf } from '../attempts.ts';
import { checkedCallOptions } from '../CallOptions.ts';
import { callPipeline } from '../callPipeline.ts';
import type { CallPlan, Target } from '../CallPlan.ts';
import type { Engine } from '../Engine.ts';
import { callOptionsOf } from '../wire/callOptionsOf.ts';
import { AnswerStream } from './AnswerStream.ts';
import { errorResponse, passedOn, setIfValid } from './errorResponse.ts';
import { apiOf, readFetchCall, withoutOurs } from './readFetchCall.ts';
import type { FetchCall } from './readFetchCall.ts';
import { isRequest, readRequest } from './readRequest.ts';
import { ResendingClient } from './ResendingClient.ts';
import type { OwnAnswer } from './ResendingClient.ts';

const RETRIES_ON =
  'an SDK retries on top of the policy: build the client that has sluice.fetch with `maxRetries: 0`, or its retries count as calls of their own';

/** A `fetch` that makes calls of the requests of an SDK. */
export function sluiceFetch(engine: Engine): typeof globalThis.fetch {
  const send: typeof globalThis.fetch = (input, init) => (engine.options.fetch ?? globalThis.fetch)(input, init);
  return async (input, init) => {
    // A request that a call of ours sends through a client which has this fetch: it has passed everything already.
    const call = isSentBySource(init)
      ? undefined
      : isRequest(input)
        ? await readRequestCall(input, init)
        : readFetchCall(input, init);
    if (call === undefined) return send(...withoutOurs(input, init));
    if (Number(call.headers.get('x-stainless-retry-count')) > 0) engine.warnOnce(RETRIES_ON);
    return new FetchRun(engine, call, send).response();
  };
}

async function readRequestCall(request: Request, init: RequestInit | undefined): Promise<FetchCall | undefined> {
  if (apiOf(request, init?.method ?? request.method) === undefined) return undefined;
  const plain = await readRequest(request, init);
  const call = plain && readFetchCall(request, plain);
  // Used, as `fetch` leaves it.
  if (call) discard(request.body);
  return call;
}

/** One request, from its arrival until its body has been read. */
class FetchRun {
  readonly #engine: Engine;
  readonly #call: FetchCall;
  readonly #own: AttemptSource;
  /** The client in whose name the request was made. */
  readonly #home: string;
  readonly #failed: OwnAnswer[] = [];
  #headers = new Headers();

  constructor(engine: Engine, call: FetchCall, send: typeof globalThis.fetch) {
    this.#engine = engine;
    this.#call = call;
    this.#home = modelPolicy(engine.policy, call.model).client;
    const client = new ResendingClient(call, send, (answer) => {
      if (answer.body === undefined) this.#headers = passedOn(answer.headers);
      else this.#failed.push(answer);
    });
    this.#own = openaiTransport(client.asClient, { runtime: engine.runtime });
  }

  /** Rejects only where the caller has aborted. */
  response(): Promise<Response> {
    const { api, stream, init } = this.#call;
    return new Promise((resolve, reject) => {
      let answered = false;
      let whole: string | undefined;
      let plan: CallPlan<unknown>;
      try {
        plan = this.#plan();
      } catch (thrown) {
        resolve(this.#refused(thrown));
        return;
      }
      const body = new AnswerStream(api, () => subscription.unsubscribe());
      const subscription = runAtPace(stream ? body.demand : undefined, () =>
        callPipeline(this.#engine, plan).subscribe({
          next: (value) => {
            if (!stream) whole = JSON.stringify(value);
            else if (!answered) resolve(this.#answer(body.body));
            answered = stream;
            if (stream) body.value(value);
          },
          error: (thrown: unknown) => {
            const aborted = init.signal?.aborted === true;
            const reason: unknown = init.signal?.reason;
            if (!answered) return aborted ? reject(reason as Error) : resolve(this.#refused(thrown));
            if (aborted) body.abort(reason);
            else body.fail(this.#failure(thrown));
          },
          complete: () => {
            if (!answered) resolve(this.#answer(whole ?? body.body));
            body.complete();
          },
        }),
      );
    });
  }

  #plan(): CallPlan<unknown> {
    const { api, stream, model, fields, ours, init } = this.#call;
    const options = { ...callOptionsOf(ours), signal: init.signal ?? undefined, midStream: 'fail' as const };
    return {
      api,
      stream,
      model,
      request: fields,
      options: checkedCallOptions(options),
      policyFallbacks: true,
      attempt: (target, request = {}) =>
        attemptStream(
          this.#sourceFor(target),
          { api, request, stream, provider: this.#engine.clients.source(target.deployment.client) },
          {
            ...attemptOptionsOf(this.#engine, target),
            // Not worth another body than the caller's, unless it is to be paid for.
            includeUsage: target.settings.includeUsage && target.settings.price !== undefined,
          },
        ),
    };
  }

  #sourceFor(target: Target): AttemptSource {
    const { client } = target.deployment;
    if (client === this.#home) return sourceOf(this.#own, target);
    const source = sourceOf(this.#engine.clients.source(client), target);
    return (attempt) =>
      source(attempt).pipe(
        tap((event) => {
          if (event.kind !== 'head') return;
          this.#headers = new Headers();
          if (event.requestId !== undefined) setIfValid(this.#headers, 'x-request-id', event.requestId);
        }),
      );
  }

  #answer(body: ReadableStream<Uint8Array> | string): Response {
    const headers = this.#headers;
    headers.set('content-type', this.#call.stream ? 'text/event-stream; charset=utf-8' : 'application/json');
    return new Response(body, { status: 200, headers });
  }

  #refused(thrown: unknown): Response {
    const failure = this.#failure(thrown);
    const { status, requestId } = failure;
    const answer = this.#failed.findLast(
      (failed) => failed.status === status && (requestId === undefined || mentions(failed.headers, requestId)),
    );
    return errorResponse(failure, failure.source === 'upstream' ? answer : undefined);
  }

  #failure(thrown: unknown): SluiceError {
    return isSluiceError(thrown) ? thrown : classifyThrown(thrown, { model: this.#call.model });
  }
}

function mentions(headers: Headers, requestId: string): boolean {
  return [...headers.values()].includes(requestId);
}

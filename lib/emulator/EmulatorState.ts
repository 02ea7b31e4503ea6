import type { ServerResponse } from 'node:http';
import type { Runtime } from '../core/runtime.ts';
import { EMULATOR_DEFAULTS } from './EmulatorOptions.ts';
import type { EmulatorOptions } from './EmulatorOptions.ts';
import type { Exchange } from './model/Exchange.ts';
import { FakeProvider } from './model/FakeProvider.ts';
import type { QuotaChange } from './model/FakeProvider.ts';
import type { FaultRule } from './model/faults.ts';
import type { ProviderRequest } from './model/request.ts';
import { RequestLog } from './model/RequestLog.ts';
import type { LogReport, RequestRecord } from './model/RequestLog.ts';
import type { ProviderStep } from './model/steps.ts';
import { play } from './play.ts';

/** What the fake provider saw. Times are milliseconds since the start, or since `reset`. */
export interface EmulatorReport extends LogReport {
  readonly upMs: number;
  readonly openConnections: number;
  readonly maxConnections: number;
  /** Most bytes of one answer that waited for its client to read them. */
  readonly maxBufferedBytes: number;
  /** Faults of the script that no request has used yet; -1 where one is for always. */
  readonly scriptLeft: number;
}

type EndOutcome = Exclude<RequestRecord['outcome'], 'running'>;

/** Everything that `reset` begins anew. */
export class EmulatorState {
  readonly #runtime: Runtime;
  readonly #provider: FakeProvider;
  readonly #log: RequestLog;
  readonly #startMs: number;
  readonly #recordHeaders: readonly string[];
  readonly #recordBodies: boolean;
  #openConnections: number;
  #maxConnections: number;
  #maxBufferedBytes = 0;
  #closing = false;

  constructor(options: EmulatorOptions, runtime: Runtime, openConnections = 0) {
    this.#runtime = runtime;
    this.#provider = new FakeProvider(options, runtime.clock);
    this.#log = new RequestLog(options.maxRecords ?? EMULATOR_DEFAULTS.maxRecords);
    this.#startMs = runtime.clock.now();
    this.#recordHeaders = (options.recordHeaders ?? []).map((name) => name.toLowerCase());
    this.#recordBodies = options.recordBodies ?? false;
    this.#openConnections = openConnections;
    this.#maxConnections = openConnections;
  }

  get modelNames(): readonly string[] {
    return this.#provider.modelNames;
  }

  get openConnections(): number {
    return this.#openConnections;
  }

  connected(): void {
    this.#openConnections++;
    this.#maxConnections = Math.max(this.#maxConnections, this.#openConnections);
  }

  disconnected(): void {
    this.#openConnections--;
  }

  script(faults: readonly FaultRule[]): void {
    this.#provider.script(faults);
  }

  setQuota(change: QuotaChange): void {
    this.#provider.setQuota(change);
  }

  report(): EmulatorReport {
    const { scriptLeft } = this.#provider;
    return {
      upMs: this.#sinceStart(),
      openConnections: this.#openConnections,
      maxConnections: this.#maxConnections,
      maxBufferedBytes: this.#maxBufferedBytes,
      scriptLeft: Number.isFinite(scriptLeft) ? scriptLeft : -1,
      ...this.#log.report(),
    };
  }

  /** Answers a request, and follows it to its end. */
  ask(request: ProviderRequest, response: ServerResponse): void {
    const log = this.#log;
    const exchange = this.#judged(request, response);
    if (exchange === undefined) return;
    const record = log.arrived(exchange, request.api, this.#sinceStart(), this.#kept(request));
    const over = (outcome: EndOutcome): void => {
      exchange.end();
      log.ended(record, this.#closing && outcome === 'aborted' ? 'closed' : outcome, this.#sinceStart());
    };
    const stop = play(exchange.steps, response, this.#runtime, {
      head: (status) => log.responded(record, status),
      wrote: (step, bytes) => {
        log.wrote(record, bytes, this.#sinceStart());
        notePhase(record, step);
        // The answer is whole; whoever holds the connection open has no part in it.
        if (step.kind === 'done') over('answered');
      },
      buffered: (bytes) => {
        this.#maxBufferedBytes = Math.max(this.#maxBufferedBytes, bytes);
      },
      ended: (how) => {
        if (how !== 'hangs') over(how === 'cut' ? 'cut' : outcomeOf(record));
      },
    });
    response.on('close', () => {
      stop();
      over('aborted');
    });
  }

  /** The emulator is closing: answers that end now were not left by their clients. */
  closing(): void {
    this.#closing = true;
  }

  #judged(request: ProviderRequest, response: ServerResponse): Exchange | undefined {
    try {
      return this.#provider.handle(request);
    } catch (error) {
      // Only a script's own `when` can throw here: its author must see that, and other requests must not.
      const message = error instanceof Error ? error.message : String(error);
      response.writeHead(500, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: { message: `the script failed: ${message}`, type: 'emulator_error' } }));
      return undefined;
    }
  }

  #kept({ headers = {}, body }: ProviderRequest): Pick<RequestRecord, 'retryCount' | 'headers' | 'body'> {
    const retryCount = Number(headers['x-stainless-retry-count'] ?? Number.NaN);
    const named = this.#recordHeaders.flatMap((name) => {
      const value = headers[name];
      return value === undefined ? [] : [[name, value] as const];
    });
    return {
      retryCount: Number.isNaN(retryCount) ? undefined : retryCount,
      ...(this.#recordHeaders.length > 0 ? { headers: Object.fromEntries(named) } : {}),
      ...(this.#recordBodies ? { body } : {}),
    };
  }

  #sinceStart(): number {
    return this.#runtime.clock.now() - this.#startMs;
  }
}

/** Of an answer that was played to its end: a stream without its finish was cut, whatever came before. */
function outcomeOf({ refusal, status = 0, stream, phase, fault }: RequestRecord): EndOutcome {
  if (refusal !== undefined) return 'refused';
  if (status >= 400) return 'failed';
  if (fault === 'bytes') return 'answered';
  return (stream && phase !== 'tail') || fault === 'cut' ? 'cut' : 'answered';
}

function notePhase(record: RequestRecord, step: ProviderStep): void {
  if (step.kind !== 'event') return;
  if (step.part === 'content') {
    record.chunks++;
    record.phase = 'streaming';
  } else if (step.part === 'finish') {
    record.phase = 'tail';
  }
}

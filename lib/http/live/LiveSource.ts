import type { Observable } from 'rxjs';
import type { SluiceEvent } from '../../core/events.ts';
import type { AdmissionSnapshot, LanesSnapshot } from '../../core/ports.ts';

/** What the page reads of how a client stands. */
export interface LiveSnapshot {
  readonly closed: boolean;
  readonly calls: number;
  readonly conversations: LanesSnapshot;
  readonly admission: AdmissionSnapshot;
  readonly spend: {
    readonly day: string;
    readonly models: Readonly<
      Record<
        string,
        {
          readonly cost: number;
          readonly inputTokens: number;
          readonly outputTokens: number;
          readonly wastedTokens: number;
        }
      >
    >;
    readonly capUsed: Readonly<Record<string, number>>;
  };
}

/** What the page needs of a client: what `createSluice` returns has it. */
export interface LiveSource {
  readonly events$: Observable<SluiceEvent>;
  snapshot(): LiveSnapshot;
}

import type { Subscriber } from 'rxjs';
import type { Outcome } from '../../core/outcome.ts';
import type { AcquireRequest, BreakerPass } from '../../core/ports.ts';
import type { BreakerOp } from './BreakerCall.ts';

export interface AskedOp {
  readonly op: BreakerOp;
  readonly request: AcquireRequest;
}

/** Who asks whether it may go. */
export interface Asking {
  readonly request: AcquireRequest;
  readonly subscriber: Subscriber<BreakerPass>;
  readonly id: string;
}

/** What became of one that went. */
export interface Telling extends AskedOp {
  /** Where something has ended. */
  readonly outcome: Outcome | undefined;
  readonly epoch: number;
}

/** As they are sent: those that ended alike, one after the other, go as one. `by` is whose each of them is. */
export function joined(asked: readonly AskedOp[]): { readonly ops: BreakerOp[]; readonly by: AcquireRequest[] } {
  const ops: BreakerOp[] = [];
  const by: AcquireRequest[] = [];
  for (const { op, request } of asked) {
    const last = ops.at(-1);
    if (last?.[0] === 'ended' && op[0] === 'ended' && alike(last, op)) {
      const [kind, epoch, verdict, count] = last;
      ops[ops.length - 1] = [kind, epoch, verdict, count + op[3], ''];
      by[by.length - 1] = request;
    } else {
      ops.push(op);
      by.push(request);
    }
  }
  return { ops, by };
}

type Ended = Extract<BreakerOp, readonly ['ended', ...unknown[]]>;

/** Each probe is one by itself. */
function alike([, epoch, verdict, , id]: Ended, [, nextEpoch, nextVerdict, , nextId]: Ended): boolean {
  return id === '' && nextId === '' && epoch === nextEpoch && verdict === nextVerdict;
}

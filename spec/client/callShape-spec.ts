import { expect } from 'chai';
import { createSluice } from '../../lib/client/createSluice.ts';
import type { Runtime } from '../../lib/core/runtime.ts';
import { virtualRuntime } from '../../lib/testing/index.ts';
import { fullOptions, fullPolicy, request } from '../bench/parts/fullPolicy.ts';
import { say, stop, usage } from '../helpers/chunks.ts';
import { fakeTransport } from '../helpers/fakeTransport.ts';
import type { FakeExchange } from '../helpers/fakeTransport.ts';

// What a call is made of, where each further piece would cost all calls. Time is measured by `npm run bench performance`.

interface Counts {
  /** Timers that were armed, whether they fired or not. */
  timers: number;
  controllers: number;
  /** Functions between the transport and the consumer, at each chunk. */
  frames: number[];
}

/** A call under `policy`, answered chunk by chunk as `answer` says. */
function counted(policy: object, options: object, answer: (exchange: FakeExchange) => void): Counts {
  const virtual = virtualRuntime();
  const counts: Counts = { timers: 0, controllers: 0, frames: [] };
  const runtime: Runtime = {
    ...virtual,
    scheduler: {
      schedule(work, delayMs) {
        counts.timers++;
        return virtual.scheduler.schedule(work, delayMs);
      },
    },
  };
  const transport = fakeTransport(runtime);
  const sluice = createSluice(transport.source, policy, { runtime });
  const { AbortController: Original, Error: Traced } = globalThis;
  const limit = Traced.stackTraceLimit;
  Traced.stackTraceLimit = 200;
  globalThis.AbortController = class extends Original {
    constructor() {
      super();
      counts.controllers++;
    }
  };
  try {
    let ended = false;
    sluice.chat(request, options).subscribe({
      next: () => counts.frames.push(framesAbove('fakeTransport')),
      complete: () => (ended = true),
    });
    answer(transport.last);
    expect(ended, 'ended').to.equal(true);
  } finally {
    globalThis.AbortController = Original;
    Traced.stackTraceLimit = limit;
  }
  virtual.run();
  return counts;
}

function framesAbove(file: string): number {
  const frames = new Error('here').stack?.split('\n').slice(1) ?? [];
  return frames.findIndex((frame) => frame.includes(file));
}

function answered(exchange: FakeExchange): void {
  exchange.head();
  exchange.data(say('one '), say('two '), say('three'), stop(), usage());
}

describe('a call', () => {
  it('arms three timers under a full policy: the deadline, and the stages up to and from the last finish reason', () => {
    expect(counted(fullPolicy, fullOptions, answered).timers).to.equal(3);
  });

  it('arms no more timers for more chunks', () => {
    const { timers } = counted(fullPolicy, fullOptions, (exchange) => {
      exchange.head();
      for (let at = 0; at < 100; at++) exchange.data(say(`word ${at} `));
      exchange.data(stop(), usage());
    });
    expect(timers).to.equal(3);
  });

  it('arms none for a deadline that is off', () => {
    expect(counted({ ...fullPolicy, deadlineMs: null }, fullOptions, answered).timers).to.equal(2);
  });

  it('makes no AbortController of its own: that is for the transport', () => {
    expect(counted(fullPolicy, fullOptions, answered).controllers).to.equal(0);
  });

  it('passes a chunk on through few functions, also under a full policy', () => {
    const { frames } = counted(fullPolicy, fullOptions, answered);
    expect(frames).to.have.length(4);
    expect(Math.max(...frames)).to.be.within(1, 24);
  });

  it('passes the first one on through fewer where the policy asks for less', () => {
    const [full = NaN] = counted(fullPolicy, fullOptions, answered).frames;
    expect(counted({ deadlineMs: null }, {}, answered).frames[0]).to.be.below(full);
  });

  it('passes each later one on through as few, whatever the policy', () => {
    const later = counted(fullPolicy, fullOptions, answered).frames.slice(1);
    expect(Math.max(...later)).to.be.within(1, 13);
    expect(counted({ deadlineMs: null }, {}, answered).frames.slice(1)).to.deep.equal(later);
  });
});

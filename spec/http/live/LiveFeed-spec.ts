import { expect } from 'chai';
import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { LiveFeed } from '../../../lib/http/live/LiveFeed.ts';
import type { LiveFrame } from '../../../lib/http/live/LiveFrame.ts';
import { liveSettings } from '../../../lib/http/live/LivePageOptions.ts';
import type { LivePageOptions } from '../../../lib/http/live/LivePageOptions.ts';
import { virtualRuntime } from '../../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../../lib/testing/virtualRuntime.ts';
import { eventOf, FakeSource } from './parts.ts';

/** As much of a response as a viewer uses. */
class FakeResponse extends EventEmitter {
  readonly written: string[] = [];
  writableNeedDrain = false;
  ended = false;
  destroyed = false;

  writeHead(): this {
    return this;
  }

  write(text: string): boolean {
    this.written.push(text);
    return true;
  }

  end(): void {
    this.ended = true;
    this.emit('close');
  }

  destroy(): void {
    this.destroyed = true;
    this.emit('close');
  }

  get kinds(): readonly string[] {
    return this.written.map((text) => /^event: (\w+)/.exec(text)?.[1] ?? 'retry');
  }

  get frames(): readonly LiveFrame[] {
    return this.written.flatMap((text) => {
      const data = /^data: (.*)$/m.exec(text)?.[1];
      return data === undefined ? [] : [JSON.parse(data) as LiveFrame];
    });
  }
}

describe('LiveFeed', () => {
  let runtime: VirtualRuntime;
  let source: FakeSource;
  beforeEach(() => {
    runtime = virtualRuntime();
    source = new FakeSource();
  });

  const feedOf = (options: LivePageOptions = {}): LiveFeed =>
    new LiveFeed(source, liveSettings({ runtime, ...options }));
  function join(feed: LiveFeed): FakeResponse {
    const response = new FakeResponse();
    expect(feed.join(response as unknown as ServerResponse)).to.equal(true);
    return response;
  }

  it('does nothing at all while nobody looks', () => {
    const feed = feedOf();
    runtime.advance(60_000);
    expect([source.observed, source.asked, runtime.pending, feed.following]).to.deep.equal([false, 0, 0, false]);
  });

  it('says everything at once, and then what is new at every beat', () => {
    const feed = feedOf({ title: 'Mine' });
    const viewer = join(feed);
    source.tell(eventOf('call.ended', 0));
    runtime.advance(1_600);
    expect(viewer.kinds).to.deep.equal(['retry', 'hello', 'frame', 'frame', 'frame']);
    expect(viewer.frames[0]).to.deep.include({ title: 'Mine', frameMs: 500 });
    expect(viewer.frames.map(({ calls }) => calls.length)).to.deep.equal([0, 1, 0, 0]);
    expect(viewer.frames.map(({ points }) => points.length)).to.deep.equal([0, 0, 1, 0]);
  });

  it('beats as it is told to', () => {
    const viewer = join(feedOf({ frameMs: 1_000 }));
    runtime.advance(3_000);
    expect(viewer.frames).to.have.length(4);
  });

  it('asks how things stand once for all viewers', () => {
    const feed = feedOf({ frameMs: 1_000 });
    for (let i = 0; i < 10; i++) join(feed);
    runtime.advance(300);
    source.asked = 0;
    runtime.advance(10_000);
    // Once for the frame, and once for the second that has ended.
    expect(source.asked).to.be.at.most(20);
  });

  it('tells a viewer that comes later everything that is known', () => {
    const feed = feedOf();
    join(feed);
    source.tell(eventOf('call.ended', 0));
    runtime.advance(2_000);
    const later = join(feed);
    expect([later.frames[0]?.calls.length, later.frames[0]?.points.length]).to.deep.equal([1, 2]);
  });

  it('has room for as many as it was told, and again once one has left', () => {
    const feed = feedOf({ maxViewers: 2 });
    const first = join(feed);
    join(feed);
    expect(feed.join(new FakeResponse() as unknown as ServerResponse)).to.equal(false);
    first.emit('close');
    join(feed);
    expect(feed.viewers).to.equal(2);
  });

  it('goes on for a while after the last viewer, without a timer, so that a page that is loaded again has its history', () => {
    const feed = feedOf({ lingerMs: 60_000 });
    join(feed).emit('close');
    expect(runtime.pending).to.equal(0);
    runtime.advance(59_000);
    source.tell(eventOf('call.ended', 59_000));
    expect(source.observed).to.equal(true);
    const again = join(feed);
    expect(again.frames[0]?.calls).to.have.length(1);
  });

  it('stops with the first event, or the next viewer, after that while', () => {
    const feed = feedOf({ lingerMs: 60_000 });
    join(feed).emit('close');
    runtime.advance(60_000);
    source.tell(eventOf('call.ended', 60_000));
    expect([source.observed, feed.following]).to.deep.equal([false, false]);

    join(feed).emit('close');
    runtime.advance(60_000);
    const next = join(feed);
    expect(next.frames[0]?.points).to.deep.equal([]);
  });

  it('stops at once where it is not to linger', () => {
    join(feedOf({ lingerMs: 0 })).emit('close');
    expect(source.observed).to.equal(false);
  });

  it('follows from the beginning where it is told to, and has no timer for that', () => {
    const feed = feedOf({ follow: 'always', lingerMs: 0 });
    source.tell(eventOf('call.ended', 0));
    runtime.advance(600_000);
    source.tell(eventOf('call.ended', 600_000));
    expect(runtime.pending).to.equal(0);
    const viewer = join(feed);
    expect([viewer.frames[0]?.calls.length, viewer.frames[0]?.points.length]).to.deep.equal([2, 300]);
    viewer.emit('close');
    expect(source.observed).to.equal(true);
  });

  it('lets a viewer who reads slowly miss frames, and then tells it everything', () => {
    const feed = feedOf();
    const viewer = join(feed);
    viewer.writableNeedDrain = true;
    runtime.advance(20_000);
    expect(viewer.frames).to.have.length(1);
    viewer.writableNeedDrain = false;
    runtime.advance(1_000);
    expect(viewer.kinds).to.deep.equal(['retry', 'hello', 'hello', 'frame']);
    expect(viewer.frames[1]?.points).to.have.length(20);
  });

  it('drops a viewer who stops reading', () => {
    const feed = feedOf();
    const stuck = join(feed);
    const fine = join(feed);
    stuck.writableNeedDrain = true;
    runtime.advance(31_000);
    expect([stuck.destroyed, fine.destroyed, feed.viewers]).to.deep.equal([true, false, 1]);
  });

  it('shows a client that has been closed for as long as somebody looks', () => {
    const viewer = join(feedOf());
    source.end();
    runtime.advance(1_000);
    expect(viewer.frames).to.have.length(3);
  });

  it('ends everything when it is closed', () => {
    const feed = feedOf();
    const viewer = join(feed);
    feed.close();
    feed.close();
    expect([viewer.ended, source.observed, runtime.pending, feed.viewers]).to.deep.equal([true, false, 0, 0]);
    expect(feed.join(new FakeResponse() as unknown as ServerResponse)).to.equal(false);
  });

  it('is never the reason why a call fails', () => {
    const feed = feedOf();
    join(feed);
    source.tell(eventOf('attempt.started', 0));
    expect(() => source.tell({ ...eventOf('attempt.ended', 0), atMs: undefined } as never)).not.to.throw();
    expect(() => source.tell({ ...eventOf('breaker.changed', 0), breaker: undefined } as never)).not.to.throw();
  });
});

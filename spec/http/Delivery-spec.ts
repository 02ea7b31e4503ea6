import { expect } from 'chai';
import { SluiceError } from '../../lib/core/errors.ts';
import type { AnswerEvent } from '../../lib/http/AnswerEvent.ts';
import { Delivery } from '../../lib/http/Delivery.ts';
import { deliverySettings } from '../../lib/http/DeliveryOptions.ts';
import type { DeliveryOptions, DeliveryReport } from '../../lib/http/DeliveryOptions.ts';
import { encodingOf } from '../../lib/http/EventEncoding.ts';
import type { HttpFailure } from '../../lib/http/httpFailure.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../lib/testing/virtualRuntime.ts';

interface Client {
  readonly delivery: Delivery;
  readonly runtime: VirtualRuntime;
  /** What was done to it, in order. */
  readonly log: string[];
  readonly reports: DeliveryReport[];
  readonly refusals: HttpFailure[];
  /** What its socket says of room after each write. */
  room: boolean;
}

function client(options: DeliveryOptions = {}, refusable = true): Client {
  const runtime = virtualRuntime();
  const settings = deliverySettings({ ...options, runtime });
  const made = { runtime, log: [] as string[], reports: [], refusals: [], room: true } as unknown as Client & {
    delivery: Delivery;
  };
  const outlet = {
    open: () => void made.log.push('open'),
    write: (text: string) => {
      made.log.push(text);
      return made.room;
    },
    close: () => void made.log.push('close'),
    cut: () => void made.log.push('cut'),
    ...(refusable && { refuse: (failure: HttpFailure) => void made.refusals.push(failure) }),
  };
  made.delivery = new Delivery(outlet, encodingOf(settings), settings, (report) => made.reports.push(report));
  return made;
}

const text = (words: string, id = '1'): AnswerEvent => ({ id, type: 'delta', data: { index: 0, text: words } });
const frame = (words: string, id = '1'): string =>
  `event: delta\nid: ${id}\ndata: ${JSON.stringify({ index: 0, text: words })}\n\n`;
const RETRY = 'retry: 3000\n\n';

describe('Delivery', () => {
  it('opens with the first event, and writes each at once while there is room', () => {
    const { delivery, log, reports } = client();
    expect(log).to.deep.equal([]);
    delivery.next(text('a'));
    delivery.next(text('b', '2'));
    delivery.complete();
    expect(log).to.deep.equal(['open', RETRY, frame('a'), frame('b', '2'), 'close']);
    expect(reports).to.deep.equal([{ outcome: 'done', events: 2, error: undefined }]);
  });

  it('opens for an answer without events too', () => {
    const { delivery, log } = client();
    delivery.complete();
    expect(log).to.deep.equal(['open', RETRY, 'close']);
  });

  it('merges what comes while there is no room, and ends when all is written', () => {
    const it = client();
    it.delivery.next(text('a'));
    it.room = false;
    it.delivery.next(text('b', '2'));
    for (let id = 3; id <= 9; id++) it.delivery.next(text('x', String(id)));
    it.delivery.complete();
    expect(it.log.slice(2)).to.deep.equal([frame('a'), frame('b', '2')]);
    it.room = true;
    it.delivery.drained();
    expect(it.log.slice(4)).to.deep.equal([frame('xxxxxxx', '9'), 'close']);
    expect(it.reports).to.deep.equal([{ outcome: 'done', events: 3, error: undefined }]);
  });

  it('drops what waits before a reset', () => {
    const it = client();
    it.room = false;
    it.delivery.next(text('a'));
    it.delivery.next(text('old', '2'));
    it.delivery.next({ id: '3', type: 'reset', data: { code: 'timeout', model: null } });
    it.delivery.next(text('new', '4'));
    it.room = true;
    it.delivery.drained();
    expect(it.log.slice(2).join('')).to.include('event: reset').and.to.include('new').and.not.to.include('old');
  });

  it('writes what waits in pieces, so that a slow client is seen to take some', () => {
    const it = client({ maxPendingBytes: 1e6 });
    it.room = false;
    it.delivery.next(text('a'));
    for (let id = 2; id < 100; id++) it.delivery.next(text('x'.repeat(1000), String(id)));
    const before = it.log.length;
    it.delivery.drained();
    expect(it.log).to.have.length(before + 1);
    expect(it.log.at(-1)?.length).to.be.within(16_000, 20_000);
  });

  describe('demand', () => {
    it('pauses when more than pauseBytes wait, and goes on when there is room', async () => {
      const it = client({ pauseBytes: 1000 });
      it.room = false;
      it.delivery.next(text('a'));
      it.delivery.next(text('x'.repeat(500), '2'));
      expect(it.delivery.demand.ready()).to.equal(undefined);
      it.delivery.next(text('x'.repeat(500), '3'));
      const ready = it.delivery.demand.ready();
      expect(ready).to.be.a('promise');
      it.room = true;
      it.delivery.drained();
      await ready;
      expect(it.delivery.demand.ready()).to.equal(undefined);
    });

    it('goes on when the client leaves, so that the reader sees that', async () => {
      const it = client({ pauseBytes: 0 });
      it.room = false;
      it.delivery.next(text('a'));
      const ready = it.delivery.demand.ready();
      it.delivery.left();
      await ready;
      expect(it.reports.map(({ outcome }) => outcome)).to.deep.equal(['left']);
    });
  });

  describe('a client that does not read', () => {
    it('is dropped past maxPendingBytes', () => {
      const it = client({ maxPendingBytes: 1000 });
      it.room = false;
      it.delivery.next(text('a'));
      it.delivery.next(text('x'.repeat(900), '2'));
      expect(it.log).not.to.include('cut');
      it.delivery.next(text('x'.repeat(100), '3'));
      expect(it.log.at(-1)).to.equal('cut');
      expect(it.reports[0]).to.have.property('outcome', 'dropped');
      expect(it.reports[0]?.error).to.include({ code: 'queue_full', limit: 1000 });
      expect(it.runtime.pending).to.equal(0);
    });

    it('is dropped after maxStalledMs, also when the answer has ended', () => {
      const it = client({ maxStalledMs: 5000 });
      it.room = false;
      it.delivery.next(text('a'));
      it.delivery.next(text('b', '2'));
      it.delivery.complete();
      it.runtime.advance(4999);
      expect(it.reports).to.deep.equal([]);
      it.runtime.advance(1);
      expect(it.reports[0]).to.have.property('outcome', 'dropped');
      expect(it.log.at(-1)).to.equal('cut');
      expect(it.runtime.pending).to.equal(0);
    });

    it('is kept as long as it takes some', () => {
      const it = client({ maxStalledMs: 5000 });
      it.room = false;
      for (let at = 0; at < 5; at++) {
        it.delivery.next(text('a'));
        it.runtime.advance(4000);
        it.delivery.drained();
      }
      expect(it.reports).to.deep.equal([]);
      it.delivery.left();
    });

    it('gets no heartbeats', () => {
      const it = client({ heartbeatMs: 1000 });
      it.room = false;
      it.delivery.next(text('a'));
      const before = it.log.length;
      it.runtime.advance(20_000);
      expect(it.log).to.have.length(before);
      it.delivery.left();
    });
  });

  describe('time', () => {
    it('sends a heartbeat after each heartbeatMs without an event', () => {
      const it = client({ heartbeatMs: 1000 });
      it.delivery.next(text('a'));
      it.runtime.advance(900);
      it.delivery.next(text('b', '2'));
      it.runtime.advance(999);
      expect(it.log.at(-1)).to.equal(frame('b', '2'));
      it.runtime.advance(1);
      expect(it.log.at(-1)).to.equal(': \n\n');
      it.runtime.advance(2000);
      expect(it.log.filter((line) => line === ': \n\n')).to.have.length(3);
      it.delivery.left();
      expect(it.runtime.pending).to.equal(0);
    });

    it('opens after openAfterMs, and tells a failure by an event from then on', () => {
      const it = client({ openAfterMs: 700 });
      it.runtime.advance(699);
      expect(it.log).to.deep.equal([]);
      it.runtime.advance(1);
      expect(it.log).to.deep.equal(['open', RETRY]);
      it.delivery.fail(new SluiceError('overloaded', 'busy'));
      expect(it.log.at(-2)).to.include('event: failure');
      expect(it.log.at(-1)).to.equal('close');
      expect(it.refusals).to.deep.equal([]);
    });

    it('waits for ever where openAfterMs is Infinity', () => {
      const it = client({ openAfterMs: Infinity });
      it.runtime.advance(1e7);
      expect(it.log).to.deep.equal([]);
      it.delivery.left();
    });

    it('tells the client when to come back', () => {
      const it = client({ retryMs: 50 });
      it.delivery.next(text('a'));
      expect(it.log[1]).to.equal('retry: 50\n\n');
      it.delivery.left();
    });
  });

  describe('a failure', () => {
    it('before the first event is refused with its status', () => {
      const it = client();
      it.delivery.fail(new SluiceError('rate_limited', 'wait', { retryAfterMs: 1200 }));
      expect(it.refusals[0]).to.deep.include({ statusCode: 429 });
      expect(it.refusals[0]?.headers).to.include({ 'retry-after': '2' });
      expect(it.log).to.deep.equal([]);
      expect(it.reports[0]).to.have.property('outcome', 'failed');
      expect(it.runtime.pending).to.equal(0);
    });

    it('after it is the last event, and waits for room like any other', () => {
      const it = client();
      it.room = false;
      it.delivery.next(text('a'));
      it.delivery.fail(new SluiceError('stream_idle', 'nothing came'));
      expect(it.reports).to.deep.equal([]);
      it.room = true;
      it.delivery.drained();
      expect(it.log.at(-2)).to.include('"code":"stream_idle"');
      expect(it.reports[0]).to.have.property('outcome', 'failed');
      expect(it.reports[0]?.error).to.have.property('code', 'stream_idle');
    });

    it('is an event where nothing can be refused', () => {
      const it = client({}, false);
      it.delivery.fail(new Error('secret'));
      expect(it.log.join('')).to.include('internal error').and.not.to.include('secret');
    });

    it('has the words of messageOf', () => {
      const it = client({ messageOf: () => 'Bitte später' });
      it.delivery.fail(new SluiceError('overloaded', 'busy'));
      expect(it.refusals[0]?.body?.error.message).to.equal('Bitte später');
    });

    it('of messageOf itself changes nothing', () => {
      const it = client({
        messageOf: () => {
          throw new Error('own');
        },
      });
      it.delivery.fail(new SluiceError('overloaded', 'busy'));
      expect(it.refusals[0]?.body?.error.message).to.equal('busy');
    });
  });

  it('does nothing after its end', () => {
    const it = client();
    it.delivery.next(text('a'));
    it.delivery.left();
    const before = it.log.length;
    it.delivery.next(text('b', '2'));
    it.delivery.fail(new Error('late'));
    it.delivery.complete();
    it.delivery.drained();
    it.delivery.broke(new Error('late'));
    it.delivery.left();
    expect(it.log).to.have.length(before);
    expect(it.reports).to.have.length(1);
  });

  for (const [option, value] of [
    ['format', 'xml'],
    ['retryMs', -1],
    ['heartbeatMs', 0],
    ['openAfterMs', NaN],
    ['pauseBytes', -1],
    ['maxPendingBytes', Infinity],
    ['maxStalledMs', 0],
    ['headers', { 'x-a': 'b\r\nset-cookie: c' }],
  ] as const) {
    it(`refuses a wrong ${option}`, () => {
      expect(() => deliverySettings({ [option]: value } as DeliveryOptions)).to.throw(option);
    });
  }
});

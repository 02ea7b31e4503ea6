import { expect } from 'chai';
import type { Grant } from '../../../lib/core/ports.ts';
import type { NamedLayer, SharedRoute } from '../../../lib/limits/LimitStore.ts';
import { keyOf, SharedLine } from '../../../lib/operators/shared/SharedLine.ts';

describe('SharedLine', () => {
  const requests: NamedLayer = { name: 'account', requestsPerMinute: 60 };
  const tokens: NamedLayer = { name: 'model', tokensPerMinute: 600 };
  const lineOf = (...layers: NamedLayer[]): SharedLine => new SharedLine(layers, {} as SharedRoute);

  const shrunk: [string, number][] = [];
  beforeEach(() => void (shrunk.length = 0));
  /** Brings what was asked for under that name. */
  const bring = (
    line: SharedLine,
    name: string,
    cost: { requests: number; tokens: number },
    reserved = cost.tokens,
  ) => {
    const grant = { reservedTokens: reserved, shrink: (by: number) => shrunk.push([name, by]) } as unknown as Grant;
    line.bring({ grant, cost, ticket: name as never, onCooldown: undefined });
  };
  const nobody = { ticket: 'nobody' as never, onCooldown: undefined };
  const taken = (line: SharedLine, cost: { requests: number; tokens: number }): unknown => line.take(cost)?.ticket;

  it('knows what its layers limit, and whose they are', () => {
    const facts = (line: SharedLine) => [line.decides, line.countsTokens, line.ofTenant];
    expect(facts(lineOf())).to.deep.equal([false, false, false]);
    expect(facts(lineOf({ name: 'account' }))).to.deep.equal([false, false, false]);
    expect(facts(lineOf(requests))).to.deep.equal([true, false, false]);
    expect(facts(lineOf(requests, tokens))).to.deep.equal([true, true, false]);
    expect(facts(lineOf({ name: 'tenant:acme', requestsPerMinute: 6 }))).to.deep.equal([true, false, true]);
  });

  it('is one with another line of the same layers and kinds of rates, whatever the rates', () => {
    expect(keyOf([requests])).to.equal(keyOf([{ ...requests, requestsPerMinute: 5 }]));
    expect(keyOf([requests])).not.to.equal(keyOf([{ ...requests, tokensPerMinute: 5 }]));
    expect(keyOf([requests])).not.to.equal(keyOf([{ name: 'account', tokensPerMinute: 60 }]));
    expect(keyOf([requests])).not.to.equal(keyOf([{ ...requests, name: 'model' }]));
    expect(keyOf([requests])).not.to.equal(keyOf([{ name: 'account' }]));
    expect(keyOf([tokens])).not.to.equal(keyOf([{ name: 'model' }]));
    expect(lineOf(requests).key).to.equal(keyOf([requests]));
  });

  it('counts tokens only where a layer does', () => {
    expect(lineOf(requests).costOf({ requests: 1, tokens: 9 })).to.deep.equal({ requests: 1, tokens: 0 });
    expect(lineOf(tokens).costOf({ requests: 1, tokens: 9 })).to.deep.equal({ requests: 1, tokens: 9 });
  });

  it('gives the smallest that covers the cost, the first of equal ones, and each once', () => {
    const line = lineOf(tokens);
    for (const [name, count] of [
      ['large', 100],
      ['small', 20],
      ['fits', 50],
      ['fits too', 50],
    ] as const) {
      bring(line, name, { requests: 1, tokens: count });
    }
    const cost = { requests: 1, tokens: 40 };
    expect(Array.from({ length: 4 }, () => taken(line, cost))).to.deep.equal(['fits', 'fits too', 'large', undefined]);
    expect(line.covers(cost)).to.be.false;
    expect(line.covers({ requests: 1, tokens: 20 })).to.be.true;
    expect(line.covers({ requests: 2, tokens: 20 })).to.be.false;
  });

  it('gives back the tokens that are left, in so far as they were taken', () => {
    const line = lineOf(tokens);
    bring(line, 'whole', { requests: 1, tokens: 100 });
    bring(line, 'clamped', { requests: 1, tokens: 200 }, 120);
    bring(line, 'exact', { requests: 1, tokens: 300 }, 130);
    taken(line, { requests: 1, tokens: 60 });
    taken(line, { requests: 1, tokens: 110 });
    taken(line, { requests: 1, tokens: 130 });
    expect(shrunk).to.deep.equal([
      ['whole', 40],
      ['clamped', 10],
    ]);
    line.bring({ grant: { reservedTokens: 9 } as Grant, cost: { requests: 1, tokens: 9 }, ...nobody });
    expect(line.take({ requests: 1, tokens: 5 })?.grant.reservedTokens).to.equal(9);
    const uncounted = lineOf(requests);
    bring(uncounted, 'alike', { requests: 1, tokens: 0 }, 50);
    expect(taken(uncounted, { requests: 1, tokens: 9 })).to.equal('alike');
    expect(shrunk).to.have.length(2);
  });

  it('is idle without places, and without what nobody has taken', () => {
    const line = lineOf(requests);
    expect([line.idle, line.brought]).to.deep.equal([true, false]);
    line.places = 1;
    expect(line.idle).to.be.false;
    line.places = 0;
    bring(line, 'one', { requests: 1, tokens: 0 });
    expect([line.idle, line.brought]).to.deep.equal([false, true]);
    expect(line.leftOver().map(({ ticket }) => ticket)).to.deep.equal(['one']);
    expect([line.idle, line.brought]).to.deep.equal([true, false]);
  });

  it('expects a wait as long as the last newcomer had to, from then on', () => {
    const line = lineOf(requests);
    expect(line.expectedMs(0)).to.equal(0);
    line.waits(1000, 300);
    expect([1000, 1100, 1300, 2000].map((nowMs) => line.expectedMs(nowMs))).to.deep.equal([300, 200, 0, 0]);
    line.waits(2000, undefined);
    expect(line.expectedMs(2000)).to.equal(0);
  });
});

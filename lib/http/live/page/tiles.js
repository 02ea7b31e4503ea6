import { element, setAttribute, setText } from './dom.js';
import { count, duration, known, money, plural, ratio, share, words } from './format.js';

/** Above the first bound it is to be looked at, above the second it hurts. */
const tone = (value, watch, bad) => (!known(value) ? 'none' : value > bad ? 'bad' : value > watch ? 'watch' : 'calm');

const TILES = [
  {
    label: 'Calls',
    show: ({ lately, standing }) => ({
      value: known(lately) ? `${count(lately.calls)}/s` : '–',
      more: `${count(standing.calls)} running`,
    }),
  },
  {
    label: 'In flight',
    show: ({ standing }) => ({
      value: count(standing.inFlight),
      more:
        standing.conversations > 0
          ? plural(standing.conversations, 'conversation', 'conversations')
          : 'requests at providers',
    }),
  },
  {
    label: 'Waiting',
    show: ({ standing }) => ({
      value: count(standing.waiting),
      more: waitsFor(standing),
      tone: tone(standing.waiting, 0, Infinity),
    }),
  },
  {
    label: 'Failed, 5 min',
    show: ({ totals }) => {
      const failed = totals.calls === 0 ? null : totals.failed / totals.calls;
      const [worst] = totals.codes;
      return {
        value: share(failed),
        more: worst === undefined ? `of ${plural(totals.calls, 'call', 'calls')}` : `mostly ${words(worst[0])}`,
        tone: tone(failed, 0, 0.05),
      };
    },
  },
  {
    label: '429 share, 5 min',
    show: ({ totals }) => ({
      value: share(totals.rateLimitedShare),
      more: `of ${plural(totals.attempts, 'attempt', 'attempts')}`,
      tone: tone(totals.rateLimitedShare, 0.02, 0.1),
    }),
  },
  {
    label: 'Attempts per call',
    show: ({ totals }) => ({
      value: ratio(totals.amplification),
      more: 'over 5 min',
      tone: tone(totals.amplification, 1.1, 1.5),
    }),
  },
  {
    label: 'First content',
    show: ({ firstContent }) => ({
      value: duration(firstContent.p50Ms),
      more: known(firstContent.p95Ms) ? `p95 ${duration(firstContent.p95Ms)}, 1 min` : 'p50, 1 min',
    }),
  },
  {
    label: 'Spent today',
    show: ({ standing: { spend } }) => ({
      value: money(spend.cost),
      more:
        spend.wastedTokens > spend.tokens / 100
          ? `${share(spend.wastedTokens / spend.tokens)} of tokens wasted`
          : plural(spend.tokens, 'token', 'tokens'),
    }),
  },
];

function waitsFor({ waiting, turnsWaiting }) {
  if (turnsWaiting > 0) return `and ${plural(turnsWaiting, 'turn', 'turns')} in line`;
  return waiting === 0 ? 'no queue' : 'for quota or a slot';
}

export function makeTiles(list) {
  const tiles = TILES.map(({ label, show }) => {
    const value = element('dd', { className: 'value', textContent: '–' });
    const more = element('dd', { className: 'more', textContent: ' ' });
    const tile = element('div', { className: 'tile' }, element('dt', { textContent: label }), value, more);
    list.append(tile);
    return (state) => {
      const shown = show(state);
      setText(value, shown.value);
      setText(more, shown.more);
      setAttribute(tile, 'data-tone', shown.tone ?? 'none');
    };
  });
  return (state) => {
    for (const update of tiles) update(state);
  };
}

import { element } from './dom.js';
import { clock, count, duration, percent, rate } from './format.js';
import { makePlot, markOf } from './plot.js';

const { strategies, forMs, endMs, bands } = JSON.parse(document.getElementById('report-data').textContent);
const MINUTE_MS = 60_000;
const plots = [];
let percentile = 'p95';

/** The narrowest buckets that a strategy has; the others' are some of them together. */
const bucketMs = Math.min(...strategies.map(({ timeline }) => timeline.bucketMs));
const buckets = Array.from({ length: Math.ceil(endMs / bucketMs) }, (_, i) => i);
const times = buckets.map((i) => (i + 0.5) * bucketMs);

/** A value for each bucket of the plots. `of(timeline, i)`: that of a strategy's own. */
function lineOf({ timeline }, of) {
  return buckets.map((i) => {
    const own = Math.floor((i * bucketMs) / timeline.bucketMs);
    return own < timeline.calls.length ? (of(timeline, own) ?? null) : null;
  });
}

const share = (part, all) => (all > 0 ? part / all : null);
const SECONDS = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 604_800,
];
const TIME = { key: 'time', show: clock, most: 'x', steps: SECONDS.map((seconds) => seconds * 1000) };
const DURATION = { show: duration, tick: (ms) => duration(ms).replace('.0 ', ' '), log: true };
const SHARE = { show: percent, tick: (value) => `${Number((100 * value).toPrecision(3))} %`, most: 1.05 };

function overTime({ title, about, y, of, overall, limit }) {
  const limits = limit === undefined ? [] : [{ name: 'the quota', role: 'limit' }];
  plots.push(
    makePlot(document.getElementById('over-time'), {
      title,
      about,
      lines: [...strategies, ...limits],
      x: TIME,
      y,
      backdrop: drawBands,
      read: () => ({
        xs: times,
        ys: [...strategies.map((strategy) => lineOf(strategy, of)), ...limits.map(() => limit())],
        overall: [...strategies.map(({ figures }) => overall?.(figures)), ...limits.map(() => undefined)],
      }),
      tableOf: ({ ys }) => ({
        first: 'From',
        rows: buckets
          .filter((i) => ys.some((line) => line[i] !== null))
          .map((i) => ({ label: clock(i * bucketMs), cells: ys.map((line) => y.show(line[i] ?? NaN)) })),
      }),
    }),
  );
}

/** How many of all calls had got so far within a time. Those that never did hold the line below 100 %. */
function asDistribution(title, about, key) {
  const xs = [...new Set(strategies.flatMap(({ timeline }) => timeline[key].cumulative.ms))].sort((a, b) => a - b);
  const ys = strategies.map(({ timeline, figures }) => {
    const { ms, counts } = timeline[key].cumulative;
    let passed = 0;
    return xs.map((x) => {
      while (passed < ms.length && ms[passed] <= x) passed++;
      return passed === 0 ? 0 : counts[passed - 1] / figures.calls;
    });
  });
  if (xs.length === 0) return;
  plots.push(
    makePlot(document.getElementById('distributions'), {
      title,
      about,
      lines: strategies,
      x: { ...DURATION, key },
      y: SHARE,
      read: () => ({ xs, ys, overall: strategies.map(() => undefined) }),
      tableOf: () => ({
        first: 'Of all calls',
        rows: [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999].map((wanted) => ({
          label: percent(wanted),
          cells: ys.map((line) => duration(xs[line.findIndex((value) => value >= wanted)] ?? NaN)),
        })),
      }),
    }),
  );
}

/** What was wrong with a provider while, and when no calls are made any more. */
function drawBands(u, colour) {
  const { left, top, width, height } = u.bbox;
  const position = (ms) => Math.max(left, Math.min(left + width, u.valToPos(ms, 'x', true)));
  u.ctx.save();
  u.ctx.fillStyle = colour('--band');
  for (const { fromMs, toMs } of bands) {
    u.ctx.fillRect(position(fromMs), top, Math.max(2, position(toMs) - position(fromMs)), height);
  }
  u.ctx.fillStyle = colour('--edge');
  if (endMs > forMs) u.ctx.fillRect(position(forMs), top, 1, height);
  u.ctx.restore();
}

function drawAll() {
  overTime({
    title: 'Answered',
    about: 'Of the calls made then, how many were answered in the end.',
    y: SHARE,
    of: ({ answered, calls }, i) => share(answered[i], calls[i]),
    overall: ({ answered, calls }) => answered / calls,
  });
  overTime({
    title: '429s per request sent',
    about: 'Of the requests that reached a provider then.',
    y: SHARE,
    of: ({ rateLimited, requests }, i) => share(rateLimited[i], requests[i]),
    overall: ({ rateLimitedShare }) => rateLimitedShare,
  });
  overTime({
    title: 'Attempts per call',
    about: 'Of the calls made then.',
    y: { show: rate },
    of: ({ attempts, calls }, i) => share(attempts[i], calls[i]),
    overall: ({ attemptsPerCall }) => attemptsPerCall,
  });
  overTime({
    title: 'Requests per minute',
    about: 'Those that reached a provider.',
    y: { show: count },
    of: (timeline, i) => (timeline.requests[i] * MINUTE_MS) / timeline.bucketMs,
  });
  const [{ timeline: first }] = strategies;
  for (const q of usedMost(first.quotas)) {
    const { client, model, unit } = first.quotas[q];
    overTime({
      title: `Quota used: ${unit} per minute, ${model ?? `account of ${client}`}`,
      about: 'What was let through. Above the quota while a burst is spent.',
      y: { show: count },
      of: ({ quotas }, i) => quotas[q].usedPerMinute[i],
      limit: () => lineOf(longest, ({ quotas }, i) => quotas[q].limitPerMinute[i]),
    });
  }
  const stages = [
    ['Queue wait', 'queueMs', 'From the call to its first request'],
    ['Time to first content', 'firstContentMs', 'From the call to its first content'],
    ['Whole answer', 'totalMs', 'From the call to its end'],
  ];
  for (const [title, key, about] of stages) {
    overTime({
      title: `${title} over time`,
      about: `${about}, by when the call was made, of those that got so far. The percentile is chosen above.`,
      y: DURATION,
      of: (timeline, i) => timeline[key][percentile][i],
      overall: (figures) => figures[key][percentile] ?? NaN,
    });
    asDistribution(title, `${about}.`, key);
  }
}

const MOST_QUOTAS = 8;

/** Places of the limits of which most was used, in their order; those that nobody used are left out. */
function usedMost(quotas) {
  const total = (values) => values.reduce((sum, value) => sum + value, 0);
  const used = quotas.map((_, q) =>
    Math.max(
      ...strategies.map(({ timeline }) => {
        const { usedPerMinute, limitPerMinute } = timeline.quotas[q];
        return total(usedPerMinute) / Math.max(1e-9, total(limitPerMinute));
      }),
    ),
  );
  const places = used.flatMap((share, q) => (share > 0 ? [q] : [])).sort((a, b) => used[b] - used[a]);
  return places.slice(0, MOST_QUOTAS).sort((a, b) => a - b);
}

/** Its buckets reach to the end. */
const longest = strategies.reduce((a, b) => (lastMs(b) > lastMs(a) ? b : a));
function lastMs({ timeline }) {
  return timeline.bucketMs * timeline.calls.length;
}

const boxes = strategies.map((strategy) => {
  const box = element('input', { type: 'checkbox', checked: true });
  document.getElementById('strategies').append(element('label', {}, box, markOf(strategy), strategy.name));
  return box;
});
const isShown = ({ role, place }) => role === 'limit' || boxes[place].checked;
const showAll = () => plots.forEach((plot) => plot.show(isShown));

drawAll();
for (const box of boxes) box.addEventListener('change', showAll);
for (const radio of document.querySelectorAll('input[name=percentile]')) {
  radio.addEventListener('change', () => {
    percentile = radio.value;
    showAll();
  });
}
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => plots.forEach((plot) => plot.rebuild()));
document.getElementById('choices').hidden = false;

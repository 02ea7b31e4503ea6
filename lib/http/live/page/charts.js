import uPlot from './uplot.js';
import { element, setText } from './dom.js';
import { count, duration, known, time } from './format.js';

const SECONDS = 300;
const LEAST_SECONDS = 60;
const HEIGHT = 132;

const perSecond = (value) => (known(value) ? `${count(value)}/s` : '–');
const CHARTS = [
  {
    title: 'Traffic',
    axis: count,
    least: 1,
    series: [
      { label: 'calls', colour: '--blue', of: (point) => point.calls, show: perSecond, fill: true },
      { label: 'attempts', colour: '--violet', of: (point) => point.attempts, show: perSecond },
    ],
  },
  {
    title: 'Trouble',
    axis: count,
    least: 1,
    series: [
      { label: '429', colour: '--amber', of: (point) => point.rateLimited, show: perSecond, fill: true },
      { label: 'failed calls', colour: '--red', of: (point) => point.failed, show: perSecond, fill: true },
    ],
  },
  {
    title: 'First content',
    axis: duration,
    least: 10,
    series: [
      { label: 'p95', colour: '--violet', of: (point) => point.p95Ms, show: duration },
      { label: 'p50', colour: '--blue', of: (point) => point.p50Ms, show: duration, fill: true },
    ],
  },
  {
    title: 'Queue',
    axis: count,
    least: 4,
    series: [
      { label: 'in flight', colour: '--green', of: (point) => point.inFlight, show: count, fill: true },
      { label: 'waiting', colour: '--amber', of: (point) => point.waiting, show: count },
    ],
  },
];

/** Draws the last five minutes, or as many as there are. */
export function makeCharts(parent) {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const charts = CHARTS.map((chart) => makeChart(parent, chart));
  dark.addEventListener('change', () => {
    for (const chart of charts) chart.rebuild();
  });
  return (points, beganWallMs, nowSecond) => {
    for (const chart of charts) chart.draw(points, beganWallMs / 1000, nowSecond);
  };
}

function makeChart(parent, { title, axis, least, series }) {
  const plot = element('div', { className: 'plot' });
  const values = series.map(({ label, colour }) => {
    const value = element('b', { textContent: '–' });
    const mark = element('i', { 'aria-hidden': 'true' });
    mark.style.background = `var(${colour})`;
    return { value, item: element('span', {}, mark, `${label} `, value) };
  });
  const caption = element('figcaption', {}, element('h3', { textContent: title }), ...values.map(({ item }) => item));
  const figure = element('figure', { className: 'panel' }, caption, plot);
  parent.append(figure);

  let data = [[], ...series.map(() => [])];
  let chart;

  const legend = (index) => {
    series.forEach(({ show }, i) => {
      const all = data[i + 1];
      setText(values[i].value, all.length === 0 ? '–' : show(all[index ?? all.length - 1]));
    });
  };

  function build() {
    chart?.destroy();
    const styles = getComputedStyle(document.documentElement);
    const colour = (name) => styles.getPropertyValue(name).trim();
    const line = { stroke: colour('--muted'), font: '11px system-ui, sans-serif' };
    const grid = { stroke: colour('--grid'), width: 1 };
    chart = new uPlot(
      {
        width: Math.max(120, plot.clientWidth),
        height: HEIGHT,
        padding: [8, 12, 0, 0],
        legend: { show: false },
        cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false }, sync: { key: 'live' } },
        scales: {
          x: { time: true },
          y: { range: (_, low, high) => [0, Math.max(least, known(high) ? high * 1.12 : least)] },
        },
        axes: [
          {
            ...line,
            grid: { show: false },
            ticks: { show: false },
            size: 24,
            gap: 8,
            space: 80,
            incrs: [15, 30, 60, 120],
            values: clock,
          },
          {
            ...line,
            grid,
            ticks: { show: false },
            size: 52,
            gap: 4,
            space: 34,
            values: (_, ticks) => ticks.map((tick) => (tick === 0 ? '0' : axis(tick))),
          },
        ],
        series: [
          {},
          ...series.map(({ colour: name, fill }) => ({
            stroke: colour(name),
            width: 1.5,
            spanGaps: false,
            points: { show: false },
            ...(fill ? { fill: `${colour(name)}26` } : {}),
          })),
        ],
        hooks: { setCursor: [({ cursor }) => legend(cursor.idx ?? undefined)] },
      },
      data,
      plot,
    );
  }

  build();
  // Not by the figure's own size: that follows the canvas.
  new ResizeObserver(() => chart.setSize({ width: Math.max(120, plot.clientWidth), height: HEIGHT })).observe(plot);

  return {
    rebuild: build,
    draw(points, beganSeconds, nowSecond) {
      // What is known fills the chart, from one minute on.
      const shown = Math.max(LEAST_SECONDS, Math.min(SECONDS, nowSecond + 1));
      const first = nowSecond - shown + 1;
      const bySecond = new Map(points.map((point) => [point.second, point]));
      const seconds = Array.from({ length: shown }, (_, i) => first + i);
      data = [
        seconds.map((second) => beganSeconds + second + 1),
        ...series.map(({ of }) =>
          seconds.map((second) => (bySecond.has(second) ? (of(bySecond.get(second)) ?? null) : null)),
        ),
      ];
      chart.setData(data);
      legend(chart.cursor.idx ?? undefined);
      figure.setAttribute(
        'aria-label',
        `${title}: ${series.map(({ label }, i) => `${label} ${values[i].value.textContent}`).join(', ')}`,
      );
    },
  };
}

function clock(_, ticks) {
  return ticks.map((tick) => time(tick * 1000));
}

/* global uPlot */
import { element } from './dom.js';

const HEIGHT = 190;
const SVG = 'http://www.w3.org/2000/svg';

/** What each line looks like: by colour, and by dashes for those who see no colours. */
export function styleOf({ role, colour }) {
  if (role === 'best') return { colour: '--best', dash: [7, 4], width: 1.5 };
  if (role === 'limit') return { colour: '--limit', dash: [2, 3], width: 1.5 };
  const dashes = [undefined, [10, 3], [3, 3], [10, 3, 3, 3]];
  const width = role === 'ours' ? 2.5 : 1.5;
  return { colour: `--line-${colour % 8}`, dash: role === 'ours' ? undefined : dashes[colour % 4], width };
}

/** A piece of the line, for legends. */
export function markOf(line) {
  const { colour, dash, width } = styleOf(line);
  const svg = document.createElementNS(SVG, 'svg');
  const stroke = document.createElementNS(SVG, 'line');
  const attributes = { x1: 0, x2: 24, y1: 4, y2: 4, 'stroke-width': width };
  for (const [name, value] of Object.entries(attributes)) stroke.setAttribute(name, value);
  if (dash !== undefined) stroke.setAttribute('stroke-dasharray', dash.join(' '));
  stroke.style.stroke = `var(${colour})`;
  svg.setAttribute('viewBox', '0 0 24 8');
  svg.setAttribute('aria-hidden', 'true');
  svg.append(stroke);
  return svg;
}

/**
 * One plot with its legend. `lines`: name, role and place of each. `read`: the figures as they are asked for now, as
 * `{ xs, ys, overall }`. `x` and `y` say how an axis is written, and whether it is logarithmic.
 */
export function makePlot(parent, { title, about, lines, read, x, y, backdrop, tableOf }) {
  const plot = element('div', { className: 'plot' });
  const values = lines.map((line) => {
    const value = element('b');
    return { value, item: element('li', {}, markOf(line), `${line.name} `, value) };
  });
  const legend = element('ul', { className: 'values' }, ...values.map(({ item }) => item));
  const caption = element('figcaption', {}, element('h3', { textContent: title }), element('p', {}, about), legend);
  const body = element('div', {
    className: 'scroll',
    tabIndex: 0,
    role: 'region',
    'aria-label': `${title}, as a table`,
  });
  const behind = element('details', {}, element('summary', { textContent: 'As a table' }), body);
  const figure = element('figure', { className: 'panel' }, caption, plot, behind);
  parent.append(figure);

  let shown = lines.map(() => true);
  let figures = read();
  let chart;

  function tell(index) {
    lines.forEach((_, i) => {
      const value = index === undefined ? figures.overall[i] : figures.ys[i][index];
      values[i].value.textContent = value === undefined ? '' : y.show(value ?? NaN);
    });
  }

  function fillTable() {
    if (!behind.open) return;
    const visible = lines.map((_, i) => i).filter((i) => shown[i]);
    const { first, rows } = tableOf(figures);
    const head = [first, ...visible.map((i) => lines[i].name)];
    body.replaceChildren(
      element(
        'table',
        {},
        element('caption', { textContent: title }),
        element('thead', {}, element('tr', {}, ...head.map((text) => element('th', { scope: 'col' }, text)))),
        element(
          'tbody',
          {},
          ...rows.map(({ label, cells }) => {
            const row = visible.map((i) => element('td', { textContent: cells[i] }));
            return element('tr', {}, element('th', { scope: 'row' }, label), ...row);
          }),
        ),
      ),
    );
  }

  function build() {
    chart?.destroy();
    const styles = getComputedStyle(document.documentElement);
    const colour = (name) => styles.getPropertyValue(name).trim();
    const text = { stroke: colour('--muted'), font: '11px system-ui, sans-serif', ticks: { show: false } };
    const grid = { stroke: colour('--grid'), width: 1 };
    chart = new uPlot(
      {
        width: Math.max(200, plot.clientWidth),
        height: HEIGHT,
        padding: [8, x.log ? 30 : 14, 0, 0],
        legend: { show: false },
        cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false }, sync: { key: x.key } },
        scales: { x: scaleOf(x), y: scaleOf(y) },
        axes: [
          { ...text, grid: { ...grid, show: x.log }, size: 26, gap: 6, space: 70, values: ticksOf(x), incrs: x.steps },
          { ...text, grid, size: 62, gap: 5, space: 32, values: ticksOf(y) },
        ],
        series: [
          {},
          ...lines.map((line, i) => {
            const { colour: name, dash, width } = styleOf(line);
            return {
              stroke: colour(name),
              width,
              dash,
              show: shown[i],
              spanGaps: x.log,
              points: { show: false },
              ...(x.log && { paths: uPlot.paths.stepped({ align: 1 }) }),
            };
          }),
        ],
        hooks: {
          drawClear: [(u) => backdrop?.(u, colour)],
          setCursor: [({ cursor }) => tell(cursor.idx ?? undefined)],
        },
      },
      dataOf(figures),
      plot,
    );
  }

  /** A logarithmic axis has no place for 0. */
  function dataOf({ xs, ys }) {
    return [
      xs,
      ...ys.map((line) => (y.log ? line.map((value) => (value === null ? null : Math.max(1, value))) : line)),
    ];
  }

  function update() {
    figures = read();
    chart.setData(dataOf(figures));
    lines.forEach((_, i) => {
      if (chart.series[i + 1].show !== shown[i]) chart.setSeries(i + 1, { show: shown[i] });
      values[i].item.hidden = !shown[i];
    });
    tell(undefined);
    const said = lines.map(({ name }, i) => (shown[i] ? [`${name} ${values[i].value.textContent}`.trim()] : []));
    figure.setAttribute('aria-label', `${title}: ${said.flat().join(', ')}`);
    fillTable();
  }

  build();
  update();
  behind.addEventListener('toggle', fillTable);
  // Not by the figure's own size: that follows the canvas.
  new ResizeObserver(() => chart.setSize({ width: Math.max(200, plot.clientWidth), height: HEIGHT })).observe(plot);

  return {
    rebuild: build,
    /** `isShown(line)`: whether it is to be seen. */
    show(isShown) {
      shown = lines.map(isShown);
      update();
    },
  };
}

function scaleOf({ log, most }) {
  if (!log) return { time: false, range: (_, low, high) => rangeOf(low, high, most) };
  return { time: false, distr: 3, range: (_, low, high) => decadesOf(low ?? 1, high ?? 1) };
}

function rangeOf(low, high, most) {
  if (most === undefined) return [0, (high ?? 0) > 0 ? high * 1.1 : 1];
  return most === 'x' ? [0, high] : [0, Math.min(most, Math.max(0.01, (high ?? 0) * 1.1))];
}

/** Whole ones, so that there are ticks to read. */
function decadesOf(low, high) {
  const from = Math.floor(Math.log10(low));
  return [10 ** from, 10 ** Math.max(from + 1, Math.ceil(Math.log10(high)))];
}

function ticksOf({ show, tick = show, log }) {
  const isDecade = (value) => Math.abs(Math.log10(value) - Math.round(Math.log10(value))) < 1e-9;
  return (_, ticks) => ticks.map((value) => (log && !isDecade(value) ? '' : tick(value)));
}

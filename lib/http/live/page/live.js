import { makeCalls } from './calls.js';
import { makeCharts } from './charts.js';
import { setAttribute, setText } from './dom.js';
import { listen } from './feed.js';
import { time } from './format.js';
import { makeStanding } from './standing.js';
import { makeTiles } from './tiles.js';

const SECONDS = 300;
const LINK = { live: 'Live', late: 'Late', lost: 'Connection lost, trying again' };

const showTiles = makeTiles(document.querySelector('#tiles'));
const drawCharts = makeCharts(document.querySelector('#charts'));
const showStanding = makeStanding();
const calls = makeCalls(document.querySelector('#calls').closest('section'));

let points = [];
const states = new Map();
const colours = new Map();
const history = {
  states,
  theme: 0,
  colour(name) {
    if (!colours.has(name)) {
      colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
    }
    return colours.get(name);
  },
};
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  colours.clear();
  history.theme++;
});

let latest;
let drawing = false;

function take(frame, anew) {
  if (anew) {
    points = [];
    states.clear();
  }
  const last = points.at(-1)?.second ?? -1;
  const fresh = frame.points.filter(({ second }) => second > last);
  points = [...points, ...fresh].slice(-SECONDS);
  for (const { second, breakers } of fresh) states.set(second, breakers ?? states.get(second - 1));
  for (const second of states.keys()) if (second <= (points.at(-1)?.second ?? 0) - SECONDS) states.delete(second);
  calls.update(frame, anew);
  latest = frame;
  // However fast frames come, and also when a hidden page catches up: one drawing for each picture.
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    draw(latest);
  });
}

function draw(frame) {
  const { wallMs, beganWallMs, standing } = frame;
  const nowSecond = Math.floor((wallMs - beganWallMs) / 1000) - 1;
  showTiles({ ...frame, lately: points.at(-1) });
  drawCharts(points, beganWallMs, nowSecond);
  showStanding({ ...frame, history, nowSecond });
  setText(document.querySelector('#clock'), time(wallMs));
  setText(document.querySelector('#since'), sinceOf(wallMs - beganWallMs));
  showAlarm(standing);
}

function sinceOf(watchedMs) {
  const seconds = Math.floor(watchedMs / 1000);
  if (seconds >= SECONDS) return '';
  return seconds < 60 ? `watching for ${seconds} s` : `watching for ${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

function showAlarm({ closed, models }) {
  const open = models.flatMap(({ deployments }) => deployments).filter(({ breaker }) => breaker.state === 'open');
  const alarm = document.querySelector('#alarm');
  const text = closed
    ? 'This client has been closed'
    : open.length > 0
      ? `Breaker open: ${open.map(({ name }) => name).join(', ')}`
      : '';
  alarm.hidden = text === '';
  setText(alarm, text);
}

listen({
  hello(frame) {
    setText(document.querySelector('#title'), frame.title);
    document.title = `${frame.title}, live`;
    take(frame, true);
  },
  frame: (frame) => take(frame, false),
  state(state) {
    const link = document.querySelector('#link');
    setAttribute(link, 'data-state', state);
    setText(link, LINK[state]);
  },
});

import { element, setAttribute, setText, showList } from './dom.js';
import { count, duration, known, share, time, words } from './format.js';

const SECONDS = 300;
const STATES = { closed: '--calm', ramping: '--amber', half_open: '--amber', open: '--red' };

/** What each model, tenant and breaker is doing now. */
export function makeStanding() {
  const models = document.querySelector('#models').tBodies[0];
  const tenants = document.querySelector('#tenants').tBodies[0];
  const changes = document.querySelector('#changes');
  return ({ standing, changes: changed, history, nowSecond }) => {
    const deployments = standing.models.flatMap((model) => model.deployments.map((each) => ({ ...each, model })));
    showList(
      models,
      deployments,
      ({ name }) => name,
      makeDeployment,
      (row, deployment) => showDeployment(row, deployment, history, nowSecond),
    );
    setText(document.querySelector('#models-more'), standing.moreModels > 0 ? `and ${standing.moreModels} more` : '');

    const most = Math.max(1, ...standing.tenants.map(({ waiting, inFlight }) => Math.max(waiting, inFlight)));
    showList(
      tenants,
      standing.tenants,
      ({ name }) => name,
      makeTenant,
      (row, tenant) => showTenant(row, tenant, most),
    );
    const { count: others, waiting } = standing.moreTenants;
    setText(
      document.querySelector('#tenants-more'),
      others > 0 ? `and ${count(others)} more, ${count(waiting)} waiting` : '',
    );

    const nothing = [deployments, standing.tenants, changed].map(({ length }) => length === 0);
    [models, tenants, changes].forEach((list, i) => {
      list.closest('.scroll').querySelector('.empty').hidden = !nothing[i];
    });

    showList(changes, [...changed].reverse(), ({ number }) => number, makeChange, showChange);
  };
}

function makeDeployment({ name }) {
  const strip = element('canvas', { width: SECONDS, height: 1, 'aria-hidden': 'true' });
  return element(
    'tr',
    {},
    element('th', { scope: 'row', textContent: name }),
    element('td', { className: 'breaker' }, element('span', { className: 'pill' }), strip, element('small')),
    element('td', {}, meter()),
    element('td', { className: 'number' }),
    element('td', {}),
    element('td', {}),
  );
}

function showDeployment(
  row,
  { model, inFlight, limit, cooldownMs, unavailableMs, breaker, layers, name },
  history,
  nowSecond,
) {
  const [, state, slots, waiting, requests, tokens] = row.cells;
  const [pill, strip, note] = state.children;
  setText(pill, words(breaker.state));
  setAttribute(pill, 'class', `pill ${{ closed: 'good', open: 'failed' }[breaker.state] ?? 'limited'}`);
  drawStrip(strip, history, name, nowSecond);
  setText(note, noteOf(breaker, cooldownMs, unavailableMs));
  const used = known(limit) && limit > 0 ? inFlight / limit : 0;
  const taken = known(limit) ? `${count(inFlight)} of ${count(limit)}` : count(inFlight);
  showMeter(slots.firstChild, used, taken, used >= 1 ? 'watch' : 'none');
  setText(waiting, count(model.waiting));
  showLayers(requests, layers, 'requests');
  showLayers(tokens, layers, 'tokens');
}

function noteOf({ state, retryAfterMs, calls, failures }, cooldownMs, unavailableMs) {
  if (state === 'open') return `asks again in ${duration(retryAfterMs)}`;
  if (cooldownMs > 0) return `paused for ${duration(cooldownMs)}`;
  if (unavailableMs > 0) return `rests for ${duration(unavailableMs)}`;
  return failures > 0 ? `${count(failures)} of ${count(calls)} failed` : '';
}

function showLayers(cell, layers, kind) {
  const shown = layers.filter((layer) => layer[kind] !== undefined);
  showList(
    cell,
    shown,
    ({ layer }) => layer,
    meter,
    (node, layer) => {
      const { level, burst, perMinute } = layer[kind];
      const left = level / burst;
      const tone = level <= 0 ? 'bad' : left < 0.15 ? 'watch' : 'none';
      showMeter(node, left, `${layer.layer}  ${count(Math.round(level))} of ${count(burst)}`, tone);
      setAttribute(node, 'title', `${layer.layer}: ${count(perMinute)} ${kind} a minute`);
    },
  );
}

function makeTenant({ name }) {
  return element(
    'tr',
    {},
    element('th', { scope: 'row', textContent: name === '' ? 'no tenant' : name }),
    element('td', {}, meter()),
    element('td', {}, meter()),
    element('td', { className: 'number' }),
  );
}

function showTenant(row, { waiting, inFlight, capUsed }, most) {
  const [, waits, runs, cap] = row.cells;
  showMeter(waits.firstChild, waiting / most, count(waiting), waiting > 0 ? 'watch' : 'none');
  showMeter(runs.firstChild, inFlight / most, count(inFlight), 'none');
  setText(cap, known(capUsed) ? share(capUsed) : '–');
  setAttribute(
    cap,
    'data-tone',
    known(capUsed) && capUsed >= 1 ? 'bad' : known(capUsed) && capUsed > 0.8 ? 'watch' : 'none',
  );
}

function meter() {
  return element('div', { className: 'meter' }, element('i', { 'aria-hidden': 'true' }), element('span'));
}

function showMeter(node, part, text, tone) {
  const [bar, label] = node.children;
  const width = `${(100 * Math.max(0, Math.min(1, part))).toFixed(1)}%`;
  if (bar.style.width !== width) bar.style.width = width;
  setText(label, text);
  setAttribute(node, 'data-tone', tone);
}

function drawStrip(canvas, history, name, nowSecond) {
  if (canvas.drawnAt === nowSecond && canvas.drawnIn === history.theme) return;
  canvas.drawnAt = nowSecond;
  canvas.drawnIn = history.theme;
  const context = canvas.getContext('2d');
  context.clearRect(0, 0, SECONDS, 1);
  for (let x = 0; x < SECONDS; x++) {
    const state = history.states.get(nowSecond - SECONDS + 1 + x)?.[name];
    if (state === undefined) continue;
    context.fillStyle = history.colour(STATES[state]);
    context.fillRect(x, 0, 1, 1);
  }
}

function makeChange({ wallMs }) {
  return element(
    'li',
    {},
    element('time', { textContent: time(wallMs) }),
    element('span', { className: 'pill' }),
    element('span', { className: 'what' }),
  );
}

const SAYS = {
  breaker: ({ name, to, reason }) => [
    to === 'open' ? 'failed' : to === 'closed' ? 'good' : 'limited',
    words(to),
    `${name} (${words(reason)})`,
  ],
  cooldown: ({ name, to, reason }) => ['limited', 'pause', `${name} for ${to} (${words(reason)})`],
  limit: ({ name, from, to, reason }) => ['limited', 'limit cut', `${name} from ${from} to ${to} (${words(reason)})`],
  store: ({ to, reason }) => [
    to === 'lost' ? 'failed' : 'good',
    `store ${to}`,
    to === 'lost' ? `no word from what processes share (${reason})` : 'processes share again',
  ],
  fallback: ({ from, to, reason }) => ['limited', 'fallback', `${to} for ${from ?? 'a model'} (${words(reason)})`],
};

function showChange(item, change) {
  const [, pill, what] = item.children;
  const [tone, title, text] = SAYS[change.kind](change);
  setAttribute(pill, 'class', `pill ${tone}`);
  setText(pill, title);
  setText(what, change.times > 1 ? `${text}, ${count(change.times)} times` : text);
}

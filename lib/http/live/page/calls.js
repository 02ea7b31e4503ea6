import { element, setAttribute, setText, showList } from './dom.js';
import { count, duration, money, time, words } from './format.js';
import { attemptInWords, toneOf, waterfall } from './waterfall.js';

const SHOWN = 30;
const KEPT = 100;

/** The latest calls. They stand still while somebody reads them: under the pointer, under the focus, or on hold. */
export function makeCalls(section) {
  const table = section.querySelector('table');
  const body = table.tBodies[0];
  const hold = section.querySelector('#hold');
  const empty = section.querySelector('.empty');
  const lists = { all: [], troubled: [] };
  const open = new Set();
  let which = 'all';
  let held = false;
  let newest = 0;
  let shownUpTo = 0;

  const reading = () => held || open.size > 0 || table.matches(':hover') || body.contains(document.activeElement);

  section.querySelectorAll('input[name=which]').forEach((input) =>
    input.addEventListener('change', () => {
      which = input.value;
      open.clear();
      show();
    }),
  );
  hold.addEventListener('click', () => {
    held = !held && !hold.hasAttribute('data-newer');
    if (!held) open.clear();
    show();
    note();
  });

  function merge(list, fresh) {
    const last = list.at(-1)?.number ?? 0;
    return [...list, ...fresh.filter(({ number }) => number > last)].slice(-KEPT);
  }

  function note() {
    const newer = newest - shownUpTo;
    const still = reading();
    setAttribute(hold, 'aria-pressed', String(held));
    setAttribute(hold, 'data-newer', still && newer > 0 ? '' : undefined);
    setText(hold, still && newer > 0 ? `Show ${count(newer)} newer` : held ? 'On hold' : 'Hold');
  }

  function show() {
    shownUpTo = newest;
    const rows = lists[which].slice(-SHOWN).reverse();
    showList(
      body,
      rows.flatMap(rowsOf),
      ({ key }) => key,
      (row) => row.make(),
      () => {},
    );
    empty.hidden = rows.length > 0;
    setText(
      empty,
      which === 'troubled' && lists.all.length > 0
        ? 'No call has failed or been retried since this page began to watch.'
        : 'No call has ended since this page began to watch. Each shows here when it does.',
    );
    const buttons = [...body.querySelectorAll('button')];
    const current = buttons.find((button) => button === document.activeElement) ?? buttons[0];
    for (const button of buttons) button.tabIndex = button === current ? 0 : -1;
  }

  function rowsOf(call) {
    const row = { key: call.number, make: () => rowOf(call) };
    return open.has(call.number) ? [row, { key: `${call.number}+`, make: () => detailsOf(call) }] : [row];
  }

  function rowOf(call) {
    const outcome = outcomeOf(call);
    const button = element('button', {
      type: 'button',
      textContent: time(call.beganWallMs),
      'aria-expanded': 'false',
      'aria-label': `Call at ${time(call.beganWallMs)}, ${modelsOf(call)}: ${outcome.text}, ${call.attemptCount} attempts, ${duration(call.durationMs)}`,
    });
    button.addEventListener('click', () => toggle(call.number, button));
    const cell = (textContent, className = '') => element('td', { textContent, className });
    return element(
      'tr',
      { className: 'call' },
      element('td', {}, button),
      cell(modelsOf(call)),
      cell(call.tenant ?? '–'),
      element('td', {}, element('span', { className: `pill ${outcome.tone}`, textContent: outcome.text })),
      cell(String(call.attemptCount), `number${call.attemptCount > 1 ? ' many' : ''}`),
      cell(duration(call.firstContentMs), 'number'),
      cell(duration(call.durationMs), 'number'),
      element('td', { className: 'wide' }, waterfall(call)),
    );
  }

  function toggle(number, button) {
    const opened = !open.delete(number);
    if (opened) open.add(number);
    button.setAttribute('aria-expanded', String(opened));
    button.closest('tr').classList.toggle('open', opened);
    const row = button.closest('tr');
    if (!opened) {
      body.nodesByKey.get(`${number}+`)?.remove();
      body.nodesByKey.delete(`${number}+`);
      return;
    }
    const call = [...lists.all, ...lists.troubled].find((other) => other.number === number);
    if (call === undefined) return;
    const details = detailsOf(call);
    body.nodesByKey.set(`${number}+`, details);
    row.after(details);
  }

  body.addEventListener('keydown', (event) => {
    const buttons = [...body.querySelectorAll('button')];
    const at = buttons.indexOf(document.activeElement);
    if (at === -1) return;
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (event.key === 'Escape') {
      if (buttons[at].getAttribute('aria-expanded') === 'true') buttons[at].click();
      return;
    }
    const next = buttons[to];
    if (next === undefined) return;
    event.preventDefault();
    buttons[at].tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });

  return {
    /** `anew`: nothing of before is to be kept. */
    update({ calls, troubled }, anew) {
      if (anew) {
        lists.all = [];
        lists.troubled = [];
        open.clear();
        newest = 0;
      }
      lists.all = merge(lists.all, calls);
      lists.troubled = merge(lists.troubled, troubled);
      newest = Math.max(newest, calls.at(-1)?.number ?? 0);
      if (anew || !reading()) show();
      note();
    },
  };
}

/** The model that was asked, and the one that answered in its place. */
function modelsOf({ model = '–', answeredBy }) {
  return answeredBy === undefined ? model : `${model} → ${answeredBy}`;
}

function outcomeOf(call) {
  if (call.outcome === 'success') return { text: 'answered', tone: 'good' };
  if (call.outcome === 'dropped') return { text: 'cancelled', tone: 'dropped' };
  return { text: words(call.code ?? 'failed'), tone: call.code === 'rate_limited' ? 'limited' : 'failed' };
}

function detailsOf(call) {
  const facts = [
    ['call', call.callId],
    ...(call.tokens === undefined ? [] : [['tokens', count(call.tokens)]]),
    ...(call.cost === undefined ? [] : [['cost', money(call.cost)]]),
    ...call.waits.map(({ where, atMs, durationMs }) => [
      `waited (${where})`,
      `${duration(durationMs)}, from ${duration(atMs)}`,
    ]),
  ];
  const head = ['', 'model', 'sent after', 'first content', 'took', 'end'].map((textContent) =>
    element('th', { scope: 'col', textContent }),
  );
  const attempts = call.attempts.map((attempt, i) =>
    element(
      'tr',
      {},
      ...[
        String(i + 1),
        attempt.model ?? '–',
        duration(attempt.atMs),
        duration(attempt.firstContentMs),
        duration(attempt.durationMs),
      ].map((textContent) => element('td', { textContent })),
      element('td', {}, element('i', { className: `dot ${toneOf(attempt)}` }), attemptInWords(attempt)),
    ),
  );
  const more = call.attemptCount - call.attempts.length;
  return element(
    'tr',
    { className: 'details' },
    element(
      'td',
      { colSpan: 8 },
      element(
        'dl',
        {},
        ...facts.map(([name, value]) =>
          element('div', {}, element('dt', { textContent: name }), element('dd', { textContent: value })),
        ),
      ),
      ...(attempts.length > 0
        ? [element('table', {}, element('thead', {}, element('tr', {}, ...head)), element('tbody', {}, ...attempts))]
        : []),
      ...(more > 0 ? [element('p', { textContent: `and ${more} more` })] : []),
    ),
  );
}

import { element } from './dom.js';
import { duration, words } from './format.js';

/** The attempts of a call as bars over its time, with what it waited for between them. */
export function waterfall(call) {
  const wholeMs = Math.max(1, call.durationMs);
  const bar = (className, atMs, ms, title) => {
    const made = element('i', { className, title });
    made.style.left = `${Math.min(99.5, (100 * atMs) / wholeMs)}%`;
    made.style.width = `${Math.max(0.5, Math.min(100, (100 * ms) / wholeMs))}%`;
    return made;
  };
  const waits = call.waits.map(({ where, atMs, durationMs }) =>
    bar('wait', atMs, durationMs, `waited ${duration(durationMs)} (${where})`),
  );
  const attempts = call.attempts.flatMap((attempt) => {
    const { atMs, durationMs, firstContentMs } = attempt;
    const title = `${attempt.model ?? ''}: ${attemptInWords(attempt)}, ${duration(durationMs)}`;
    if (attempt.outcome !== 'success') return [bar(toneOf(attempt), atMs, durationMs, title)];
    const beforeMs = firstContentMs ?? durationMs;
    return [
      bar('before', atMs, beforeMs, title),
      ...(durationMs > beforeMs ? [bar('content', atMs + beforeMs, durationMs - beforeMs, title)] : []),
    ];
  });
  return element('div', { className: 'waterfall', role: 'img', 'aria-label': inWords(call) }, ...waits, ...attempts);
}

export function attemptInWords({ outcome, code, status }) {
  if (outcome === 'success') return 'answered';
  return [
    outcome === 'dropped' ? 'cancelled' : words(code ?? 'failed'),
    ...(status && status !== 200 ? [status] : []),
  ].join(' ');
}

export function toneOf({ outcome, code, status }) {
  if (outcome === 'success') return 'content';
  if (outcome === 'dropped') return 'dropped';
  return status === 429 || code === 'rate_limited' ? 'limited' : 'failed';
}

function inWords(call) {
  const waitedMs = call.waits.reduce((sum, wait) => sum + wait.durationMs, 0);
  return [
    ...(waitedMs > 0 ? [`waited ${duration(waitedMs)}`] : []),
    ...call.attempts.map((attempt) => `${attemptInWords(attempt)} after ${duration(attempt.durationMs)}`),
    ...(call.attemptCount === 0 ? ['nothing was sent'] : []),
  ].join(', then ');
}

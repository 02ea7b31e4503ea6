import { readAnswer } from './readAnswer.js';

const form = document.querySelector('form');
const input = document.querySelector('textarea');
const log = document.querySelector('#log');
const send = document.querySelector('#send');
const stop = document.querySelector('#stop');
const note = document.querySelector('#note');

/** What was said, and the turn that is being answered; kept so that the page may be loaded again in the middle of it. */
const kept = JSON.parse(sessionStorage.getItem('chat') ?? '{"messages":[]}');
let leave;

function keep() {
  sessionStorage.setItem('chat', JSON.stringify(kept));
}

function show({ role, content }) {
  const item = document.createElement('li');
  item.className = role;
  item.textContent = content;
  log.append(item);
  scroll();
  return item;
}

function scroll() {
  log.scrollTop = log.scrollHeight;
}

async function answer() {
  const item = show({ role: 'assistant', content: '' });
  const controller = new AbortController();
  leave = () => controller.abort();
  let text = '';
  item.classList.add('writing');
  busy(true);
  await readAnswer(kept.turn, kept.messages, {
    signal: controller.signal,
    waiting: () => say('The connection broke. Trying again.'),
    hear(type, data) {
      say('');
      if (type === 'delta') text += data.text;
      if (type === 'reset') text = '';
      if (type === 'failure') say(data.error.code === 'aborted' ? 'Stopped.' : `No answer: ${data.error.message}`);
      item.textContent = text;
      scroll();
    },
  });
  item.classList.remove('writing');
  if (text === '') item.remove();
  else kept.messages.push({ role: 'assistant', content: text });
  delete kept.turn;
  keep();
  busy(false);
}

function busy(answering) {
  send.hidden = answering;
  stop.hidden = !answering;
  log.setAttribute('aria-busy', String(answering));
  if (!answering) input.focus();
}

function say(text) {
  note.textContent = text;
}

form.addEventListener('submit', (event) => {
  event.preventDefault();
  const content = input.value.trim();
  if (content === '' || kept.turn !== undefined) return;
  input.value = '';
  say('');
  const message = { role: 'user', content };
  kept.messages.push(message);
  kept.turn = crypto.randomUUID();
  keep();
  show(message);
  void answer();
});

stop.addEventListener('click', async () => {
  const { turn } = kept;
  // The stream then ends with a failure `aborted`. Where the server cannot be reached, leave it at that.
  const stopped = await fetch(`answers/${turn}`, { method: 'DELETE' }).catch(() => undefined);
  if (stopped?.status !== 204) leave();
});

input.addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  form.requestSubmit();
});

for (const message of kept.messages) show(message);
if (kept.turn !== undefined) void answer();

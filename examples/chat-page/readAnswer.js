const FIRST_WAIT_MS = 300;
const LONGEST_WAIT_MS = 5_000;
const TRIES = 20;

/**
 * Reads the answer to a turn, and comes back to it after any broken connection, from where it was. The server knows the
 * turn by its name: however often it is asked, the provider is asked once.
 *
 * `hear(type, data)` gets what comes, `waiting(ms)` how long it takes until the next try. Resolves when there is no more.
 */
export async function readAnswer(turn, messages, { hear, waiting, signal }) {
  let lastEventId;
  let over = false;
  const take = (event) => {
    if (event.id !== '') lastEventId = event.id;
    if (event.data === '') return;
    over = event.type === 'done' || event.type === 'failure';
    hear(event.type, JSON.parse(event.data));
  };

  for (let failures = 0; failures < TRIES;) {
    try {
      const response = await fetch(`answers/${turn}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...(lastEventId ? { 'last-event-id': lastEventId } : {}) },
        body: JSON.stringify(messages),
        signal,
      });
      // 204: it has been told to the end already.
      if (response.status === 204) return;
      if (!response.ok) {
        const { error } = await response.json().catch(() => ({}));
        hear('failure', { error: error ?? { message: `the server answered ${response.status}` } });
        return;
      }
      failures = 0;
      for await (const event of eventsOf(response.body)) take(event);
      if (over) return;
    } catch (error) {
      if (signal.aborted) return;
      // What `hear` throws is not the network's fault.
      if (!(error instanceof TypeError)) throw error;
    }
    const waitMs = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** failures++);
    waiting(waitMs);
    await new Promise((resolve) => setTimeout(resolve, waitMs));
  }
  hear('failure', { error: { message: 'the server cannot be reached' } });
}

/** The events of a stream of server-sent events. */
async function* eventsOf(body) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let unread = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      // An event ends with an empty line; what comes after the last one is not whole yet.
      const blocks = (unread + decoder.decode(value, { stream: true })).split('\n\n');
      unread = blocks.pop();
      for (const block of blocks) yield eventOf(block);
    }
  } finally {
    // Who stops reading lets go of the connection.
    void reader.cancel().catch(() => {});
  }
}

function eventOf(block) {
  const fields = { event: 'message', id: '', data: [] };
  for (const line of block.split('\n')) {
    const [, name, value] = /^(\w+): ?(.*)$/.exec(line) ?? [];
    if (name === 'data') fields.data.push(value);
    else if (name !== undefined) fields[name] = value;
  }
  return { type: fields.event, id: fields.id, data: fields.data.join('\n') };
}

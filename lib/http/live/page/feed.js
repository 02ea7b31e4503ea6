const TRY_AGAIN_MS = 3_000;
const HIDDEN_MS = 30_000;

/**
 * Listens to the server, comes back by itself after any break, and rests while nobody can see the page. Each connection
 * begins with `hello`, which has everything, so nothing has to be asked for again.
 */
export function listen({ hello, frame, state }) {
  let source;
  let retry;
  let heardAt = 0;
  let everyMs = 500;

  const heard = (handle) => (event) => {
    heardAt = performance.now();
    state('live');
    handle(JSON.parse(event.data));
  };

  function open() {
    clearTimeout(retry);
    close();
    source = new EventSource('events');
    source.addEventListener(
      'hello',
      heard((data) => {
        everyMs = data.frameMs;
        hello(data);
      }),
    );
    source.addEventListener('frame', heard(frame));
    source.addEventListener('error', () => {
      state('lost');
      // A status other than 200 ends an EventSource for good: the server is full, or on its way up.
      if (source?.readyState === EventSource.CLOSED) retry = setTimeout(open, TRY_AGAIN_MS);
    });
  }

  function close() {
    source?.close();
    source = undefined;
  }

  // A connection may be dead without anybody having been told.
  setInterval(() => {
    if (source?.readyState !== EventSource.OPEN) return;
    const silentMs = performance.now() - heardAt;
    if (silentMs > 20 * everyMs + 5_000) {
      state('lost');
      open();
    } else if (silentMs > 6 * everyMs) {
      state('late');
    }
  }, 1_000);

  let resting;
  document.addEventListener('visibilitychange', () => {
    clearTimeout(resting);
    if (document.hidden) {
      resting = setTimeout(() => {
        clearTimeout(retry);
        close();
      }, HIDDEN_MS);
    } else if (source === undefined) {
      open();
    }
  });

  open();
}

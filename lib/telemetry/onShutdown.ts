import type { ShutdownCause } from './StartTelemetryOptions.ts';

/**
 * Runs `shutdown` once one of `causes` comes. A signal then takes its usual effect, unless somebody else listens to it
 * too: then it is theirs to end the process. Returns what takes the listeners back.
 */
export function onShutdown(causes: readonly ShutdownCause[], shutdown: () => Promise<void>): () => void {
  const stop = (): void => {
    for (const [cause, listener] of listeners) process.off(cause, listener);
  };
  const listeners = causes.map((cause) => {
    const listener = (): void => {
      stop();
      const others = process.listenerCount(cause);
      void shutdown().finally(() => {
        if (cause !== 'beforeExit' && others === 0) process.kill(process.pid, cause);
      });
    };
    return [cause, listener] as const;
  });
  for (const [cause, listener] of listeners) process.on(cause, listener);
  return stop;
}

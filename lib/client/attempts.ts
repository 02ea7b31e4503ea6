import type { AttemptSource } from '../core/attempt.ts';
import type { AttemptOptions } from '../sources/AttemptOptions.ts';
import type { Target } from './CallPlan.ts';
import type { Engine } from './Engine.ts';

/** The transport under the name that the model has there. */
export function sourceOf(source: AttemptSource, { model: asked, deployment }: Target): AttemptSource {
  const { model } = deployment;
  if (model === undefined || model === asked) return source;
  return (attempt) => source({ ...attempt, request: { ...attempt.request, model } });
}

/** What the policy says of one attempt. */
export function attemptOptionsOf(engine: Engine, { settings, headers, deployment }: Target): AttemptOptions {
  const { options, runtime, clients } = engine;
  const { timeouts, includeUsage } = settings;
  return {
    timeouts,
    headers,
    classify: options.classify,
    includeUsage,
    server: clients.server(deployment.client),
    runtime,
  };
}

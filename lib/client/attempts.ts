import type { AttemptSource } from '../core/attempt.ts';
import { attemptSettings } from '../sources/AttemptOptions.ts';
import type { AttemptOptions, AttemptSettings } from '../sources/AttemptOptions.ts';
import type { Target } from './CallPlan.ts';
import type { Engine } from './Engine.ts';

/** The transport under the name that the model has there. */
export function sourceOf(source: AttemptSource, { model: asked, deployment }: Target): AttemptSource {
  const { model } = deployment;
  if (model === undefined || model === asked) return source;
  return (attempt) => source({ ...attempt, request: { ...attempt.request, model } });
}

/** What the policy says of one attempt, for sources whose options are their own. */
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

/** The same, checked: once for each model of a policy. */
export function attemptSettingsOf(engine: Engine, { settings, headers, deployment }: Target): AttemptSettings {
  const { options, runtime, clients } = engine;
  let checked = engine.attemptSettings.get(settings);
  if (checked === undefined) {
    const { timeouts, includeUsage } = settings;
    checked = attemptSettings({ timeouts, includeUsage, classify: options.classify, runtime });
    engine.attemptSettings.set(settings, checked);
  }
  return { ...checked, headers, server: clients.server(deployment.client) };
}

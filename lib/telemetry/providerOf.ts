import type { ServerAddress } from '../core/attempt.ts';

/** Ends of host names, and whom the conventions say they belong to. */
const HOSTS: readonly (readonly [end: string, provider: string])[] = [
  ['api.openai.com', 'openai'],
  ['openai.azure.com', 'azure.ai.openai'],
  ['cognitiveservices.azure.com', 'azure.ai.openai'],
  ['services.ai.azure.com', 'azure.ai.inference'],
  ['models.ai.azure.com', 'azure.ai.inference'],
  ['api.deepseek.com', 'deepseek'],
  ['api.groq.com', 'groq'],
  ['api.mistral.ai', 'mistral_ai'],
  ['api.anthropic.com', 'anthropic'],
  ['api.x.ai', 'x_ai'],
  ['api.perplexity.ai', 'perplexity'],
  ['api.cohere.ai', 'cohere'],
  ['api.cohere.com', 'cohere'],
  ['generativelanguage.googleapis.com', 'gcp.gemini'],
  ['aiplatform.googleapis.com', 'gcp.vertex_ai'],
  ['ml.cloud.ibm.com', 'ibm.watsonx.ai'],
  ['amazonaws.com', 'aws.bedrock'],
];

/** What a user says of it: one name for everything, or a function of where it goes. */
export type ProviderOption =
  string | ((server: ServerAddress | undefined, model: string | undefined) => string | undefined);

/** The best that is known of who answers. Behind a proxy that is `openai`, as its API is what is spoken. */
export function providerOf(
  option: ProviderOption | undefined,
  server: ServerAddress | undefined,
  model: string | undefined,
): string {
  if (typeof option === 'string') return option;
  const named = option?.(server, model);
  if (named !== undefined) return named;
  const host = server?.host ?? '';
  for (const [end, provider] of HOSTS) {
    if (host === end || host.endsWith(`.${end}`)) return provider;
  }
  return 'openai';
}

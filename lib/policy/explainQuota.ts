import type { LayerPolicy, Policy } from './Policy.ts';
import { POLICY_DEFAULTS } from './policyDefaults.ts';
import { count, counted, duration } from './words.ts';

/** Of about the size of a request with a long prompt. */
const SAMPLE_TOKENS = 12_000;

/** What the rates of a layer mean for those who ask; empty where it has none. */
export function layerLines(layer: LayerPolicy): readonly string[] {
  const { requestsPerMinute, burstRequests = 1, tokensPerMinute, burstTokens = 1 } = layer;
  const lines: string[] = [];
  if (requestsPerMinute !== undefined) {
    const every = duration(60_000 / requestsPerMinute);
    const rate = counted(requestsPerMinute, 'request');
    lines.push(`at most ${rate} a minute, bursts of ${count(burstRequests)}; after a burst, one every ${every}`);
  }
  if (tokensPerMinute !== undefined) {
    const sample = Math.min(SAMPLE_TOKENS, burstTokens, tokensPerMinute);
    const waitMs = (sample / tokensPerMinute) * 60_000;
    lines.push(
      `at most ${counted(tokensPerMinute, 'token')} a minute, bursts of ${count(burstTokens)}; ` +
        `a ${count(sample)}-token request waits up to ${duration(waitMs)} once they are spent`,
    );
  }
  return lines;
}

export function quotaLines({ quota }: Policy): readonly string[] {
  const { account, clients } = quota;
  const rates = layerLines(account);
  const lines = rates.length > 0 ? [...rates] : ['no rate is given: it is found by what the provider says and refuses'];
  lines.push(
    account.settle === 'reserved'
      ? 'the provider counts what was reserved: tokens that were not used do not come back'
      : 'tokens that were reserved and not used come back',
  );
  if (account.exhaustedMs !== POLICY_DEFAULTS.exhaustedMs) {
    lines.push(
      `an account that has run out is left alone for ${duration(account.exhaustedMs)}, or as long as the provider says`,
    );
  }
  for (const [name, layer] of Object.entries(clients)) {
    const own = layerLines(layer);
    lines.push(`client ${name} has an account of its own: ${own.length > 0 ? own.join('; ') : 'no rate is given'}`);
  }
  return lines;
}

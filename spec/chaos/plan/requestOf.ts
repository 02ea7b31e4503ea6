import { estimateCost } from '../../../lib/index.ts';
import type { PlannedCall } from './ChaosPlan.ts';

/** Never to be seen in anything but a request. */
export const PROMPT_MARK = 'say-nothing-of-this';

type Turn = { readonly role: 'user'; readonly content: string };

interface ChaosRequest {
  readonly model: string;
  readonly messages: Turn[];
  readonly input: Turn[];
  readonly metadata: { readonly call: string };
  readonly max_completion_tokens?: number;
  readonly max_output_tokens?: number;
}

/** What a planned call asks. Its number is in it, by which the transport knows whose attempt it sees. */
export function requestOf({ api, model, words, outputLimit }: PlannedCall, index: number): ChaosRequest {
  const content = `${PROMPT_MARK} ${index}${' word'.repeat(words)}`;
  const turn: Turn = { role: 'user', content };
  const metadata = { call: String(index) };
  const request =
    api === 'respond'
      ? { model, input: [turn], metadata, ...(outputLimit !== undefined && { max_output_tokens: outputLimit }) }
      : { model, messages: [turn], metadata, ...(outputLimit !== undefined && { max_completion_tokens: outputLimit }) };
  return request as ChaosRequest;
}

/** What it weighs, by the estimate that the client makes. */
export function tokensOf(planned: PlannedCall, index: number): number {
  return Math.max(1, estimateCost(requestOf(planned, index)).tokens);
}

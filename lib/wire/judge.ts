import type { UpstreamErrorCode } from '../core/errors.ts';
import { codeOfName, codeOfStatus } from './codes.ts';
import type { ErrorFacts } from './errorBody.ts';

/** What a failure is, and the sizes that its message names, where one was too large. */
export interface Verdict {
  readonly code: UpstreamErrorCode;
  readonly limit?: number | undefined;
  readonly requested?: number | undefined;
}

/** Of several names in one error the more particular one decides. */
const MOST_PARTICULAR_FIRST: readonly UpstreamErrorCode[] = [
  'quota_exhausted',
  'context_too_long',
  'content_filtered',
  'request_too_large',
  'overloaded',
  'rate_limited',
  'auth',
  'not_found',
  'conflict',
  'timeout',
  'connection',
  'upstream_body_invalid',
  'server_error',
  'bad_request',
];

/** Names that say no more than the status does, and that vendors put on everything. */
const GENERIC: ReadonlySet<UpstreamErrorCode | undefined> = new Set(['server_error', 'bad_request', undefined]);

const MONEY =
  /credit balance|insufficient[ _](?:credit|balance|fund|quota)|exceeded your current quota|out of credits|requires more credits|(?:no|not enough) (?:remaining )?credits|(?:spend(?:ing)?|billing|usage)(?: hard)? limit (?:has been |was |is )?(?:reached|exceeded)|payment required|\barrearage\b/i;
const LONG_WINDOW =
  /\bper[ _-](?:day|month|week)\b|\b[RTI]PD\b|\b(?:daily|monthly|weekly) (?:\w+ )?(?:limit|quota|allowance)/i;
const NEVER_GRANTED = /per[ _-]?(?:day|month|week)/i;
const LIMIT_OF_NOTHING = /\bquota exceeded for metric\b[^*]{0,300}?\blimit: 0\b(?!\.)|\blimit:? 0, used\b/i;
const CONTEXT =
  /context[ _](?:length|window|size|limit)|prompt (?:is|was) too long|input (?:is|was) too long|input token count|exceeds? the maximum number of (?:input )?tokens|reduce the length of|too many (?:input )?tokens|max_new_tokens.{0,20}must be|maximum (?:sequence|input|prompt|allowed) length|longer than the (?:model|maximum)/i;
const CONTENT =
  /content (?:management|filter|policy|policies|moderation)|flagged (?:as|by|for|content)|safety (?:system|filter|setting)|usage polic(?:y|ies)|inappropriate content|requires moderation|blocked (?:by|due to|for) (?:content|safety|policy|moderation)/i;
const OVERLOAD =
  /overloaded|(?:at|over|out of|no|insufficient|limited) capacity|servers? (?:is |are )?busy|(?:high|heavy|peak) (?:demand|load|traffic)|temporarily unavailable|model is (?:currently |still )?loading|no (?:available|healthy) (?:model )?(?:provider|upstream|worker|instance)|worker limit reached/i;
const RATE = /rate[ _-]?limit|too many requests|throttl|quota exceeded|requests? per (?:minute|second)/i;
const KEY =
  /(?:api|access)[ _-]?key.{0,30}(?:not valid|invalid|incorrect|expired|not found|missing)|(?:invalid|incorrect|missing|expired|no) (?:api|access)[ _-]?key|unauthori[sz]ed|authentication (?:failed|required)/i;
const MODEL =
  /model\b.{0,120}(?:not found|does(?:n't| not) exist|not exist|is not available|decommissioned|deprecated|not a valid)|(?:no such|unknown|invalid) model|not a valid model/i;
const TOO_LARGE =
  /request (?:is )?too large|request entity too large|payload too large|larger than the (?:token )?(?:rate )?limit/i;

/** Judges a failure by the names in its body, then by its words, then by its status; `undefined` status: none is known. */
export function judge(facts: ErrorFacts | undefined, status: number | undefined): Verdict {
  const named = facts === undefined ? undefined : nameCode(facts);
  // A generic name says less than a status does; a particular one says more.
  const byStatus = status === undefined ? undefined : codeOfStatus(status);
  const code = GENERIC.has(named) ? (byStatus ?? named) : named;
  if (facts === undefined) return { code: code ?? 'server_error' };
  return refine(code, facts);
}

function nameCode({ tokens }: ErrorFacts): UpstreamErrorCode | undefined {
  const codes = new Set(tokens.map(codeOfName));
  return MOST_PARTICULAR_FIRST.find((code) => codes.has(code));
}

function refine(code: UpstreamErrorCode | undefined, facts: ErrorFacts): Verdict {
  const text = facts.message.slice(0, 4_000);
  const oneOf = (...codes: (UpstreamErrorCode | undefined)[]): boolean => codes.includes(code);
  if (oneOf('rate_limited', 'request_too_large', undefined, 'bad_request')) {
    const sizes = rateSizes(text);
    if (sizes !== undefined && sizes.requested > sizes.limit) return { code: 'request_too_large', ...sizes };
    if (oneOf('rate_limited') && TOO_LARGE.test(text)) return { code: 'request_too_large', ...sizes };
  }
  if (code === 'rate_limited' && isLongQuota(facts, text)) return { code: 'quota_exhausted' };
  if (oneOf('rate_limited', 'bad_request', 'auth', undefined) && MONEY.test(text) && !isMinuteQuota(facts)) {
    return { code: 'quota_exhausted' };
  }
  if (code === 'context_too_long') return { code, ...contextSizes(text) };
  if (oneOf('bad_request', 'server_error', 'request_too_large', undefined) && CONTEXT.test(text)) {
    return { code: 'context_too_long', ...contextSizes(text) };
  }
  if (oneOf('bad_request', 'auth', undefined) && (CONTENT.test(text) || isFlagged(facts))) {
    return { code: 'content_filtered' };
  }
  if (oneOf('server_error', undefined) && OVERLOAD.test(text)) return { code: 'overloaded' };
  if (oneOf('bad_request', undefined) && KEY.test(text)) return { code: 'auth' };
  if (oneOf('bad_request', undefined) && MODEL.test(text)) return { code: 'not_found' };
  if (code === undefined && RATE.test(text))
    return isLongQuota(facts, text) ? { code: 'quota_exhausted' } : { code: 'rate_limited' };
  return { code: code ?? 'server_error' };
}

interface Sizes {
  readonly limit: number;
  readonly requested: number;
}

/** `Limit 30000, Used 29937, Requested 385` */
function rateSizes(text: string): Sizes | undefined {
  const match = /\blimit:? ?([\d,]{1,15})\b[^]{0,120}?\brequested:? ?([\d,]{1,15})\b/i.exec(text);
  return sizes(numberOf(match?.[1]), numberOf(match?.[2]));
}

function contextSizes(text: string): Sizes | undefined {
  // `prompt is too long: 210000 tokens > 200000`, `178959 + 64000 > 200000`
  const above = /([\d,]{1,15})(?: \+ ([\d,]{1,15}))?(?: tokens)? > ([\d,]{1,15})/i.exec(text);
  if (above !== null)
    return sizes(numberOf(above[3]), numberOf(above[1]) + (above[2] === undefined ? 0 : numberOf(above[2])));
  const counted = /token count[^\d]{0,20}([\d,]{1,15})[^\d]{0,100}?([\d,]{1,15})/i.exec(text);
  if (counted !== null) return sizes(numberOf(counted[2]), numberOf(counted[1]));
  const limit = /(?:maximum|max)[^\d]{0,60}?([\d,]{1,15}) tokens/i.exec(text);
  if (limit === null) return undefined;
  const requested =
    /(?:requested|resulted in|contains?|has|have|is|provided) (?:about |at least |a total of )?([\d,]{1,15}) (?:input )?tokens/i.exec(
      text.slice(limit.index + limit[0].length),
    );
  return sizes(numberOf(limit[1]), numberOf(requested?.[1]));
}

function numberOf(text: string | undefined): number {
  return Number(text?.replaceAll(',', ''));
}

/** `undefined` unless both are known and above 0. */
function sizes(limit: number, requested: number): Sizes | undefined {
  return limit > 0 && requested > 0 ? { limit, requested } : undefined;
}

/** A limit per day or longer, or one of nothing: waiting as a retry would is useless. */
function isLongQuota({ places }: ErrorFacts, text: string): boolean {
  if (LIMIT_OF_NOTHING.test(text)) return true;
  const violations = places.flatMap(
    (place) => (Array.isArray(place['violations']) ? place['violations'] : []) as unknown[],
  );
  return violations.length > 0 ? violations.some(isLongViolation) : LONG_WINDOW.test(text);
}

function isLongViolation(violation: unknown): boolean {
  const { quotaId, quotaMetric, quotaValue } = (violation ?? {}) as Record<string, unknown>;
  if (quotaValue === '0' || quotaValue === 0) return true;
  return [quotaId, quotaMetric].some((name) => typeof name === 'string' && NEVER_GRANTED.test(name));
}

/** Gemini words a limit per minute as "you exceeded your current quota" too: its status tells. */
function isMinuteQuota(facts: ErrorFacts): boolean {
  return facts.tokens.some((token) => token.toUpperCase() === 'RESOURCE_EXHAUSTED');
}

function isFlagged({ places }: ErrorFacts): boolean {
  return places.some((place) => 'flagged_input' in place || 'content_filter_result' in place);
}

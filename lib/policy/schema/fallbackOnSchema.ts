import type { z } from 'zod';
import type { ErrorCode } from '../../core/errors.ts';
import { listOf, setting, strict, text } from './leaves.ts';

/** Whether a failure of this code may lead to another model. Those that may not end the call for whoever started it. */
const MAY_LEAD: Readonly<Record<ErrorCode, boolean>> = {
  rate_limited: true,
  quota_exhausted: true,
  request_too_large: true,
  context_too_long: true,
  content_filtered: true,
  overloaded: true,
  server_error: true,
  bad_request: true,
  auth: true,
  not_found: true,
  conflict: true,
  connection: true,
  stream_truncated: true,
  stream_idle: true,
  timeout: true,
  upstream_body_invalid: true,
  timeout_deadline: true,
  circuit_open: true,
  queue_full: true,
  queue_timeout: true,
  cost_too_large: true,
  retry_budget_exhausted: true,
  spend_capped: true,
  limiter_unavailable: true,
  invalid_request: true,
  invalid_option: true,
  invalid_policy: true,
  aborted: false,
  superseded: false,
  lane_lost: false,
  closed: false,
};

const models = listOf(text('the name of a model'), 'names of models');

const codes = (Object.keys(MAY_LEAD) as ErrorCode[]).filter((code) => MAY_LEAD[code]);

export const fallbackOnSchema: z.ZodType<Readonly<Partial<Record<ErrorCode, readonly string[] | undefined>>>> = strict(
  Object.fromEntries(codes.map((code) => [code, setting(models, `Models to ask after ${code}.`)])),
);

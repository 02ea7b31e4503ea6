import type { UpstreamErrorCode } from '../core/errors.ts';

// What providers call a failure, and what it is. Compared without letter case, `-`, `.` and blanks read as `_`.

const NAMES: Readonly<Record<Exclude<UpstreamErrorCode, 'stream_truncated' | 'stream_idle'>, string>> = {
  quota_exhausted: `insufficient_quota credit_balance_exhausted credit_balance_too_low organization_usage_limit_exceeded
    organization_spend_limit_exceeded project_spend_limit_exceeded enforced_spend_limit_reached spend_limit_reached
    billing_error billing_hard_limit_reached billing_not_active usage_limit_reached usage_limit_exceeded
    usage_not_included insufficient_balance insufficient_credits insufficient_credit insufficient_funds payment_required
    quota_exhausted quota_exceeded_daily daily_limit_exceeded daily_quota_exceeded monthly_limit_exceeded
    credits_exhausted out_of_credits free_tier_exhausted arrearage exceeded_current_quota_error trial_expired
    allocationquota_freetieronly`,
  request_too_large: `request_too_large payload_too_large request_entity_too_large`,
  context_too_long: `context_length_exceeded context_window_exceeded model_context_window_exceeded
    contextwindowexceedederror context_length_error prompt_too_long input_too_long exceed_context_size_error
    context_size_exceeded max_context_length_exceeded`,
  content_filtered: `content_filter content_filtered content_policy_violation responsibleaipolicyviolation
    contentpolicyviolationerror moderation_blocked content_moderation data_inspection_failed invalid_prompt
    prompt_blocked safety_violation image_content_policy_violation cyber_policy_violation content_policy
    sensitive_content prohibited_content`,
  overloaded: `overloaded_error overloaded server_is_overloaded server_overloaded service_unavailable_error
    service_unavailable engine_overloaded engine_overloaded_error capacity_exceeded over_capacity no_capacity
    service_tier_capacity_exceeded unavailable model_overloaded model_busy server_busy model_loading model_not_ready
    insufficient_system_resource serviceunavailableexception modelnotreadyexception resource_unavailable`,
  rate_limited: `rate_limit_exceeded rate_limit_error rate_limit rate_limited rate_limit_reached rate_limit_reached_error
    ratelimiterror ratelimitreached ratelimitexceeded too_many_requests too_many_requests_error toomanyrequests
    toomanyrequestsexception throttlingexception throttling throttled throttling_rate_quota throttling_allocation_quota
    resource_exhausted slow_down slowdown requests tokens input_tokens output_tokens limit_requests limit_tokens
    limit_burst_rate in_flight_budget_exhausted concurrency_limit_exceeded concurrent_limit_exceeded quota_exceeded
    request_rate_too_large tokens_per_minute_exceeded`,
  auth: `invalid_api_key incorrect_api_key api_key_invalid authentication_error invalid_authentication
    invalid_authentication_error authenticationerror permission_error permission_denied permissiondeniederror
    permissiondenied unauthenticated unauthorized forbidden access_denied accessdenied accessdeniedexception
    account_deactivated unsupported_country_region_territory invalid_organization missing_api_key token_expired
    unrecognizedclientexception`,
  not_found: `model_not_found not_found not_found_error notfounderror deployment_not_found deploymentnotfound
    resource_not_found resourcenotfound model_decommissioned model_deprecated model_not_available model_not_exist
    invalid_model unknown_model resourcenotfoundexception route_not_found`,
  conflict: `conflict conflict_error conflicterror aborted_conflict already_exists`,
  timeout: `timeout timeout_error request_timeout deadline_exceeded requesttimeout apiconnectiontimeouterror
    apitimeouterror modeltimeoutexception`,
  bad_request: `invalid_request_error invalid_request invalid_argument failed_precondition out_of_range bad_request
    badrequest badrequesterror unprocessable_entity unprocessableentityerror invalid_parameter invalidparameter
    unsupported_parameter unsupported_value invalid_value invalid_type missing_required_parameter unknown_parameter
    validation_error validationexception string_above_max_length invalid_image unsupported_file`,
  server_error: `server_error internal_server_error internalservererror internal_error internalerror internal api_error
    unknown data_loss engine_error worker_error internalserverexception modelerrorexception model_error provider_error
    upstream_error bad_gateway gateway_timeout`,
  connection: `apiconnectionerror connection_error`,
  upstream_body_invalid: `invalid_response_body`,
};

const BY_NAME: ReadonlyMap<string, UpstreamErrorCode> = new Map(
  Object.entries(NAMES).flatMap(([code, names]) =>
    names.split(/\s+/).map((name): [string, UpstreamErrorCode] => [name, code as UpstreamErrorCode]),
  ),
);

/** What a name means, where it is known. */
export function codeOfName(name: string): UpstreamErrorCode | undefined {
  const plain = name.trim().toLowerCase().replace(/[-. ]/g, '_');
  return BY_NAME.get(plain) ?? BY_NAME.get(plain.replaceAll('_', ''));
}

/** What a status means when nothing else is known. */
export function codeOfStatus(status: number): UpstreamErrorCode {
  switch (status) {
    case 401:
    case 403:
    case 407:
      return 'auth';
    case 402:
      return 'quota_exhausted';
    case 404:
    case 405:
    case 410:
      return 'not_found';
    case 408:
      return 'timeout';
    case 409:
      return 'conflict';
    case 413:
      return 'request_too_large';
    case 425:
    case 498:
    case 529:
      return 'overloaded';
    case 429:
      return 'rate_limited';
    case 451:
      return 'content_filtered';
    default:
      return status >= 500 ? 'server_error' : 'bad_request';
  }
}

/**
 * The words that may pass from a provider's message into ours. Messages quote prompts, keys and names in ways that no
 * pattern catches, so what is not a word of this trade is left out.
 */
export const VOCABULARY: ReadonlySet<string> = new Set(
  `a about above accept accepted access account across action actively activate active add after again all allow allowed
  already also an and another any api application apply approximately are argument arguments array as at attempt audio
  authentication authorization authorized authenticate auth available average away azure
  back backend bad balance base batch be because been before below between billing blocked body boolean both bucket budget
  busy but by bytes
  cache call called calls can cancelled cannot capacity ceiling change chars character characters chat check choice choices
  choose class client closed cloud code codes com completion completions concurrency concurrent configuration connect
  connected connecting connection contact contain contains content context continue convert could couldn country credential
  credentials credit credits current currently cut cloudflare cutoff
  daily data date day days deadline deactivated decommissioned default delay denied deployment deployments deprecated
  details detected deactivate did different disabled disconnected does doesn doing don done dropped due duration during
  early edge either empty enabled encountered end ended endpoint endpoints engine enough ensure entity enforced error
  errors estimate estimated event every exceed exceeded exceeding exceeds exhausted exist exists expected expired external
  failed failure fail fetch few field fields file filter filtered filtering final find first fit flagged flex for forbidden
  format found free from full function functions further
  gateway gave generate generated generating generation get given go google gpu gradually group groups
  had handle handling has hang hard harmful have having header headers help high higher hit host hour hours how however
  http https hung
  id if image images in include included includes incoming incorrect increase increased increasing index indicates input
  inputs instead insufficient integer intended internal into invalid is isn issue it item items its
  json just keep key keys
  large larger last later latency least length less limit limited limits line list load loaded loading local long longer
  low lower
  made maintenance make malformed management many match max maximum may mb memory message messages method mid million min
  minimum minute minutes missing model models moment monthly month more most much multiple must
  name need needed network never new next no non none normal not null number
  object occurred of off on once one only open operation or order organization origin other otherwise our out output over
  overloaded own
  page param parameter parameters parse parsing part passed path payload peer pending per permission permissions permitted
  persists plan please policies policy poor position possible premature prefix prefill premium pricing priority problem
  process processed processing project prompt prompts proper property provide provided provider providers proxy
  quota quotas queue queued
  ramp rate rates raw re reach reached read reading reason reasoning receive received recently record reduce reduced
  refresh refused region regional rejected rejecting released remaining remove repeat replace request requested requesting
  requests require required requires reset resets resource resources respond responded responding response responses
  restricted result resulted results resume retried retries retry retrying return returned review role rpm rpd run running
  runtime
  safety same schema second seconds see seem seems send sending sent server servers service services session set several
  short shorter should shut side similar since single size slow slots small smaller socket some something soon sorry
  specified speed spend spending standard start started state status still stop stopped store stream streaming string
  structure submitted succeed such suffix support supported supports sure suspended switch syntax system
  take taken team temporarily temporary terminated text than that the their them then there these they this those threshold
  throttle throttled throttling through tier time timed timeout times to today token tokens too took tool tools top total
  tpm tpd traffic transient true try trying type types
  unable unauthorized unavailable under undefined unexpected unexpectedly unit unknown unless unprocessable unrecognized
  unsupported until unusual up update upgrade upstream usage use used user users uses using usually
  valid value values variable verified verify version very via violate violated violates violating violation
  wait waited waiting was wasn way we went were what when where which while will window with within without worker workers
  would write wrong
  you your
  abort aborted hang reset resolve getaddrinfo dns certificate tls ssl handshake
  openai anthropic gemini vertex groq mistral deepseek openrouter cerebras
  frequency_penalty function_call functions include_usage logit_bias logprobs max_completion_tokens max_output_tokens
  max_tokens metadata modalities parallel_tool_calls presence_penalty previous_response_id reasoning_effort
  response_format safety_identifier seed service_tier stop_sequences stream_options temperature thinking tool_calls
  tool_choice top_k top_logprobs top_p verbosity instructions input_tokens output_tokens
  insufficient_quota rate_limit_exceeded context_length_exceeded server_error overloaded_error rate_limit_error
  api_error invalid_request_error content_filter content_policy_violation resource_exhausted`
    .split(/\s+/)
    .filter((word) => word !== ''),
);

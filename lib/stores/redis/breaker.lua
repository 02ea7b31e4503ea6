-- A circuit breaker that processes share. SharedCircuit.ts decides the same, and says why; change both.
--
-- KEYS: 1 state (hash), 2 probes (hash: id -> "process at content heard")
-- ARGV: 1 rules, 2 call, both JSON; see BreakerCall.ts
-- All times are whole microseconds, below 2^53. Numbers are written so that they are read back exactly.

local state_key, probes_key = KEYS[1], KEYS[2]
local rules, call = cjson.decode(ARGV[1]), cjson.decode(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local max, min, floor, huge = math.max, math.min, math.floor, math.huge
local CLOSED, OPEN, HALF_OPEN, RAMPING = 0, 1, 2, 3
local PROBE_SUCCEEDED, CONSECUTIVE, RATIO, TIME_OVER, PROBE_FAILED, PROBE_STUCK, RAMP_OVER = 0, 1, 2, 3, 4, 5, 6
local FAILURE, SUCCESS = 0, 1
local NOT, PROBE, DECIDE = 0, 1, 2
local STEPS, REMEMBERED = 10, { [OPEN] = CONSECUTIVE, [HALF_OPEN] = TIME_OVER, [RAMPING] = PROBE_SUCCEEDED }

local function exact(number)
  return string.format('%.17g', number)
end

-- State

local raw = redis.call('HGETALL', state_key)
local s, window_text = {}, ''
for i = 1, #raw, 2 do
  if raw[i] == 'window' then window_text = raw[i + 1] else s[raw[i]] = tonumber(raw[i + 1]) end
end
local fresh = s.epoch == nil
for name, value in pairs({
  state = CLOSED, reason = 0, epoch = now, credit = 0, consecutive = 0, last_failure = -huge, growths = 0,
  failed_probes = 0, open_for = 0, open_until = 0, closed_at = -huge,
}) do
  s[name] = s[name] or value
end

local window = {}
for step, calls, failures in window_text:gmatch('(%S+) (%S+) (%S+)') do
  window[#window + 1] = { step = tonumber(step), calls = tonumber(calls), failures = tonumber(failures) }
end

local probes, probe_count = {}, 0
raw = redis.call('HGETALL', probes_key)
for i = 1, #raw, 2 do
  local process, at, content, heard = raw[i + 1]:match('^(%S+) (%S+) (%S+) (%S+)$')
  probes[raw[i]] = { process = process, at = tonumber(at), content = content == '1', heard = tonumber(heard) }
  probe_count = probe_count + 1
end

local changes, may, current_op = {}, {}, -1

local function change(to, reason)
  s.state, s.reason = to, reason
  changes[#changes + 1] = { to, reason, current_op }
end

local function new_epoch(at)
  s.epoch = max(s.epoch + 1, at)
  s.credit = 0
  probes, probe_count = {}, 0
end

local function remember(last)
  if last[1] == CLOSED then return end
  s.epoch = max(s.epoch + 1, now)
  s.state, s.growths, s.failed_probes = last[1], last[3], last[4]
  s.reason = REMEMBERED[last[1]]
  s.open_until = now + last[2]
  s.open_for = last[2]
  s.closed_at = now + last[2] - rules.rampUs
  s.credit = 0
end

-- The window, in ten steps

local step_now = floor(now / max(1, floor(rules.windowUs / STEPS)))

local function add(calls, failures)
  local kept = {}
  for _, each in ipairs(window) do
    if each.step > step_now - STEPS and each.step <= step_now then kept[#kept + 1] = each end
  end
  window = kept
  local newest = window[#window]
  if newest and newest.step == step_now then
    newest.calls, newest.failures = newest.calls + calls, newest.failures + failures
  else
    window[#window + 1] = { step = step_now, calls = calls, failures = failures }
  end
end

local function sums()
  local calls, failures = 0, 0
  for _, each in ipairs(window) do
    if each.step > step_now - STEPS and each.step <= step_now then
      calls, failures = calls + each.calls, failures + each.failures
    end
  end
  return calls, failures
end

-- What happens

local function open(at, reason)
  local was_stable = s.state ~= HALF_OPEN and at - s.closed_at >= rules.windowUs
  if was_stable then
    s.growths, s.failed_probes = 0, 0
  else
    if reason == PROBE_FAILED then s.failed_probes = s.failed_probes + 1 end
    if reason ~= PROBE_FAILED or s.failed_probes > rules.steadyProbes then s.growths = s.growths + 1 end
  end
  local open_for, i = rules.openUs, 0
  while i < s.growths and open_for < rules.openCapUs do
    open_for = open_for * rules.openFactor
    i = i + 1
  end
  s.open_for = floor(min(rules.openCapUs, open_for))
  s.open_until = at + s.open_for
  new_epoch(at)
  change(OPEN, reason)
end

local function close()
  new_epoch(now)
  s.closed_at = now
  s.consecutive = 0
  window = {}
  change(rules.rampUs > 0 and RAMPING or CLOSED, PROBE_SUCCEEDED)
end

local function stuck_at()
  local oldest = huge
  for _, probe in pairs(probes) do
    if not probe.content then oldest = min(oldest, probe.at) end
  end
  return oldest + rules.halfOpenMaxUs
end

local function failed()
  add(1, 1)
  if now - s.last_failure > rules.windowUs then s.consecutive = 0 end
  s.last_failure = now
  s.consecutive = s.consecutive + 1
  local calls, failures = sums()
  if rules.consecutiveFailures > 0 and s.consecutive >= rules.consecutiveFailures then
    open(now, CONSECUTIVE)
  elseif rules.errorRatio > 0 and calls >= rules.minCalls and failures >= rules.errorRatio * calls then
    open(now, RATIO)
  end
end

local run = {}

function run.ask(id)
  if s.state == OPEN and now >= s.open_until then
    new_epoch(now)
    change(HALF_OPEN, TIME_OVER)
  end
  if s.state == OPEN then return NOT end
  if s.state ~= HALF_OPEN then return DECIDE end
  local silent = 0
  for _, probe in pairs(probes) do
    if not probe.content then silent = silent + 1 end
  end
  s.credit = min(1, s.credit) + rules.halfOpenShare
  local earned = s.credit > 1 - 1e-9 and silent < rules.halfOpenMaxProbes
  if not earned and probe_count > 0 then return NOT end
  s.credit = max(0, s.credit - 1)
  probes[id] = { process = call.process, at = now, content = false, heard = now }
  probe_count = probe_count + 1
  return PROBE
end

function run.content(id)
  if probes[id] then probes[id].content = true end
end

function run.ended(epoch, verdict, count, id)
  if epoch ~= s.epoch then return end
  if s.state == HALF_OPEN then
    local held = probes[id] ~= nil
    if held then
      probes[id] = nil
      probe_count = probe_count - 1
    end
    if verdict == SUCCESS then
      close()
    elseif verdict == FAILURE then
      open(now, PROBE_FAILED)
    elseif held then
      s.credit = s.credit + 1
    end
  elseif verdict == SUCCESS then
    add(count, 0)
    s.consecutive = 0
  elseif verdict == FAILURE then
    local i = 0
    while i < count and s.state ~= OPEN do
      failed()
      i = i + 1
    end
  end
end

-- The call

if fresh then remember(call.last) end
local before_state, before_reason = s.state, s.reason
if not fresh and call.returned == 1 and s.state == CLOSED then remember(call.last) end
for id, probe in pairs(probes) do
  if probe.process == call.process then
    probe.heard = now
  elseif probe.process == call.former or probe.heard < now - rules.leaseUs then
    probes[id] = nil
    probe_count = probe_count - 1
    s.credit = s.credit + 1
  end
end
local stuck = stuck_at()
if now >= stuck then open(stuck, PROBE_STUCK) end
if s.state == RAMPING and now >= s.closed_at + rules.rampUs then change(CLOSED, RAMP_OVER) end
for i, op in ipairs(call.ops) do
  current_op = i - 1
  local said = run[op[1]](unpack(op, 2))
  if said then may[#may + 1] = said end
end

-- What is kept, and what is said

local words = {}
for name, value in pairs(s) do
  if value > -huge then
    words[#words + 1] = name
    words[#words + 1] = exact(value)
  end
end
local steps = {}
for i, each in ipairs(window) do steps[i] = exact(each.step) .. ' ' .. each.calls .. ' ' .. each.failures end
redis.call('HSET', state_key, 'window', table.concat(steps, ' '), unpack(words))
redis.call('PEXPIRE', state_key, rules.keepMs)
redis.call('DEL', probes_key)
for id, probe in pairs(probes) do
  local written = { probe.process, exact(probe.at), probe.content and 1 or 0, exact(probe.heard) }
  redis.call('HSET', probes_key, id, table.concat(written, ' '))
end
redis.call('PEXPIRE', probes_key, rules.keepMs)

local left = 0
if s.state == OPEN then
  left = max(0, s.open_until - now)
elseif s.state == RAMPING then
  left = max(0, s.closed_at + rules.rampUs - now)
elseif s.state == HALF_OPEN then
  left = max(1, min(stuck_at() - now, s.open_for))
end
local calls, failures = sums()
local consecutive = now - s.last_failure > rules.windowUs and 0 or s.consecutive
return {
  { s.epoch, s.state, left, consecutive, calls, failures, s.open_for, s.growths, s.failed_probes, before_state, before_reason },
  may,
  changes,
}

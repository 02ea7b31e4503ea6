-- A quota that processes share. SharedQuota.ts decides the same, and says why; change both.
--
-- KEYS: 1 state (hash), 2 line (zset: id by order), 3 entries (hash: id -> "owner turn cost cost ..."),
--       4 members (zset: who counts, by when heard), 5 leases (zset: who waits, by when heard)
-- ARGV: 1 rules, 2 call, both JSON; see QuotaCall.ts
-- All times are whole microseconds, below 2^53, and in the cooldown milliseconds. Numbers are written so that they are
-- read back exactly.

local state_key, line_key, entries_key, members_key, leases_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local rules, call = cjson.decode(ARGV[1]), cjson.decode(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local now_ms = now / 1000
local max, min, ceil, floor, huge = math.max, math.min, math.ceil, math.floor, math.huge
local DONE, GRANTED, WAIT, FULL, LATE, GONE, PAUSED = 0, 1, 2, 3, 4, 5, 6
local TRIAL_LOOK, REPLAN = 250000, 100
local MINUTE = 60000000
local buckets = rules.buckets

local function exact(number)
  return string.format('%.17g', number)
end

-- State

local raw = redis.call('HGETALL', state_key)
local s, stored = {}, {}
for i = 1, #raw, 2 do
  s[raw[i]] = tonumber(raw[i + 1])
  stored[raw[i]] = s[raw[i]]
end
local fresh = s.known == nil
if fresh then
  s = { known = now, full = call.known == 0 and 1 or 0, replan = 0, replanned = 0, last = 0, order = 0 }
  s.phase, s.trial = 0, 0
end
for name, value in pairs({ floor = -huge, paused = -huge, opens = -huge, ramp_ends = -huge, heard = -huge }) do
  s[name] = s[name] or value
end
for _, bucket in ipairs(buckets) do
  local key = bucket.key
  if s['real:' .. key] == nil then
    local full = fresh and s.full == 1
    s['real:' .. key] = now + (full and 0 or bucket.sizeUs)
    s['planned:' .. key] = s['real:' .. key]
    s['back:' .. key], s['charged:' .. key], s['reported:' .. key] = 0, 0, -1
  end
end
local size = redis.call('ZCARD', line_key)

-- Cooldown: as in limits/Cooldown.ts. Phases: 0 idle, 1 paused, 2 trial, 3 ramp

local pause = rules.cooldown

local function pause_ms()
  if s.phase == 3 and now_ms >= s.ramp_ends then s.phase = 0 end
  if s.phase == 0 then return 0 end
  return max(0, ceil(s.opens - now_ms))
end

local function gap_ms()
  if pause.rampMs == 0 then return 0 end
  local left = max(0, s.ramp_ends - now_ms) / pause.rampMs
  return left * pause.staggerMs * (1 + call.random)
end

local function start_ramp()
  s.phase = 3
  s.ramp_ends = now_ms + pause.rampMs
  s.opens = now_ms + gap_ms()
end

local function hint(wait_ms)
  local floor_ms = now_ms + wait_ms
  if not (wait_ms > 0) or floor_ms <= s.floor then return 0 end
  local added = call.random * min(1000, pause.jitter * wait_ms)
  local paused = s.phase == 1 and now_ms < s.opens
  s.opens = max(paused and s.opens or -huge, floor_ms + added)
  s.floor = floor_ms
  if not paused then s.paused = now_ms end
  s.phase = 1
  return wait_ms
end

local function passed()
  if s.phase == 1 then
    s.phase = 2
    s.opens = now_ms + pause.trialMs
    s.trial = s.trial + 1
    return s.trial
  end
  if s.phase == 2 then start_ramp() elseif s.phase == 3 then s.opens = now_ms + gap_ms() end
  return 0
end

local function pause_us()
  local us = pause_ms() * 1000
  return s.phase == 2 and min(us, TRIAL_LOOK) or us
end

-- Buckets

local function cost_of(bucket, requests, tokens)
  return ceil((bucket.unit == 'requests' and requests or tokens) * MINUTE / bucket.perMinute)
end

local function costs_of(requests, tokens)
  local costs = {}
  for i, bucket in ipairs(buckets) do costs[i] = cost_of(bucket, requests, tokens) end
  return costs
end

local function slack_of(bucket, cost)
  local slack = bucket.sizeUs - cost
  return slack >= bucket.lagUs and slack or 0
end

local function charge(bucket, at, cost)
  if cost == 0 then return end
  local key = bucket.key
  s['real:' .. key] = max(s['real:' .. key], at + bucket.lagUs) + cost
  s['charged:' .. key] = s['charged:' .. key] + cost
end

local function give_back(bucket, cost, drained_at, back)
  local key = bucket.key
  local left = drained_at - (s['back:' .. key] - back) - now - bucket.lagUs
  local given = max(0, min(cost, left))
  s['real:' .. key] = s['real:' .. key] - given
  s['back:' .. key] = s['back:' .. key] + given
end

local function report(bucket, remaining, ago, charged)
  local key = bucket.key
  local level = floor(remaining * MINUTE / bucket.perMinute)
  if charged >= 0 then
    if charged < s['reported:' .. key] then return end
    s['reported:' .. key] = charged
    level = level + max(0, ago - bucket.lagUs) - (s['charged:' .. key] - charged)
  end
  s['real:' .. key] = max(s['real:' .. key], now + bucket.sizeUs - level)
end

local function room_at(costs, which)
  local room = 0
  for i, bucket in ipairs(buckets) do
    if costs[i] > 0 then room = max(room, s[which .. bucket.key] - slack_of(bucket, costs[i])) end
  end
  return room
end

-- The line

local function plan_from_now()
  s.last = now
  for _, bucket in ipairs(buckets) do s['planned:' .. bucket.key] = s['real:' .. bucket.key] end
end

local function take(turn, costs)
  s.last = turn
  for i, bucket in ipairs(buckets) do
    local key = 'planned:' .. bucket.key
    if costs[i] > 0 then s[key] = max(s[key], turn + bucket.lagUs) + costs[i] end
  end
end

local function written(owner, turn, costs)
  local words = { owner, exact(turn) }
  for i, cost in ipairs(costs) do words[i + 2] = exact(cost) end
  return table.concat(words, ' ')
end

-- Buckets that were not there when it came cost it nothing.
local function read(entry)
  local owner, turn, rest = entry:match('^(%S+) (%S+)(.*)$')
  local costs = {}
  for cost in rest:gmatch('%S+') do costs[#costs + 1] = tonumber(cost) end
  for i = #costs + 1, #buckets do costs[i] = 0 end
  return { owner = owner, turn = tonumber(turn), costs = costs }
end

local function remove(id)
  if redis.call('ZREM', line_key, id) == 0 then return false end
  redis.call('HDEL', entries_key, id)
  size = size - 1
  return true
end

local function marks_into(reply)
  for _, bucket in ipairs(buckets) do
    for _, name in ipairs({ 'real:', 'back:', 'charged:' }) do reply[#reply + 1] = s[name .. bucket.key] end
  end
end

local function grant(at, costs)
  for i, bucket in ipairs(buckets) do charge(bucket, at, costs[i]) end
  local reply = { GRANTED, max(0, at - now), passed(), 0 }
  marks_into(reply)
  return reply
end

local function add_spare(reply, spare, spare_tokens)
  local costs = costs_of(1, spare_tokens)
  for i, bucket in ipairs(buckets) do
    local filled = max(s['real:' .. bucket.key], now + bucket.lagUs + rules.sliceUs)
    if costs[i] > 0 then spare = min(spare, floor((now + bucket.sizeUs / 2 - filled) / costs[i])) end
  end
  if spare < 1 then return reply end
  reply[4] = spare
  for i, bucket in ipairs(buckets) do charge(bucket, now + rules.sliceUs, costs[i] * spare) end
  marks_into(reply)
  return reply
end

-- What a call asks for

local run = {}

function run.enter(id, requests, tokens, limit, spare, spare_tokens)
  local costs = costs_of(requests, tokens)
  if size == 0 then plan_from_now() end
  local paused = pause_us()
  local turn = max(s.last, now, room_at(costs, 'planned:'))
  local in_order = size == 0 or s.phase == 0
  if in_order and paused == 0 and turn <= now and room_at(costs, 'real:') <= now then
    local reply = grant(now, costs)
    for i, bucket in ipairs(buckets) do
      local key = 'planned:' .. bucket.key
      if costs[i] > 0 then s[key] = max(s[key], now + bucket.lagUs) + costs[i] end
    end
    if size == 0 and s.phase == 0 then return add_spare(reply, spare, spare_tokens) end
    return reply
  end
  local wait = max(turn - now, paused)
  if size >= rules.maxWaiting then return { FULL, wait } end
  if wait > limit then return { LATE, wait } end
  s.order = s.order + 1
  redis.call('ZADD', line_key, s.order, id)
  redis.call('HSET', entries_key, id, written(call.process, turn, costs))
  size = size + 1
  take(turn, costs)
  return { WAIT, wait, size }
end

function run.look(id)
  local entry = redis.call('HGET', entries_key, id)
  if not entry then return { GONE } end
  entry = read(entry)
  local turn, costs = entry.turn, entry.costs
  local paused = pause_us()
  if paused > 0 then return { WAIT, max(paused, turn - now), 0 } end
  if s.phase ~= 0 and redis.call('ZRANGE', line_key, 0, 0)[1] ~= id then
    return { WAIT, max(ceil(pause.staggerMs * 1000), 1000), 0 }
  end
  if turn > now + rules.aheadUs then return { WAIT, turn - now, 0 } end
  local room = room_at(costs, 'real:')
  if room > max(now, turn) then
    s.replan = 1
    return { WAIT, room - now, 0 }
  end
  local late = now - turn > rules.graceUs
  remove(id)
  if late then s.replan = 1 end
  return grant(late and now or turn, costs)
end

function run.leave(id)
  if remove(id) then s.replan = 1 end
  return { DONE }
end

function run.back(requests, tokens, ...)
  local marks = { ... }
  for i, bucket in ipairs(buckets) do
    give_back(bucket, cost_of(bucket, requests, tokens), marks[3 * i - 2] or 0, marks[3 * i - 1] or 0)
  end
  s.replan = 1
  return { DONE }
end

function run.more(requests, tokens)
  for _, bucket in ipairs(buckets) do charge(bucket, now, cost_of(bucket, requests, tokens)) end
  s.replan = 1
  return { DONE }
end

function run.again(requests, tokens, ...)
  run.back(requests, tokens, ...)
  return run.more(requests, tokens)
end

function run.report(at, remaining, ago, charged)
  local bucket = buckets[at + 1]
  if bucket then report(bucket, remaining, ago, charged) end
  s.replan = 1
  return { DONE }
end

function run.hint(wait_ms)
  return { PAUSED, ceil(hint(wait_ms)) }
end

function run.rejected(ago_ms)
  if now_ms - ago_ms < s.paused then return { PAUSED, 0 } end
  return { PAUSED, ceil(hint(pause.unhintedMs)) }
end

function run.answered(trial)
  if s.phase == 2 and trial == s.trial then start_ramp() end
  return { DONE }
end

function run.gaveUp(trial)
  if s.phase == 2 and trial == s.trial then
    s.phase = 1
    s.opens = now_ms
  end
  return { DONE }
end

function run.returned(others, ...)
  local used = { ... }
  local alone = now - s.heard >= others
  if alone then s.full = 0 end
  for i, bucket in ipairs(buckets) do
    local key = 'real:' .. bucket.key
    if alone then
      s[key] = max(s[key], now + bucket.sizeUs + others)
    else
      s[key] = max(s[key], now) + (used[i] or 0)
    end
  end
  s.replan = 1
  return { DONE }
end

-- The call

if call.known ~= 0 and call.known ~= s.known and s.full == 1 then
  s.full, s.replan = 0, 1
  for _, bucket in ipairs(buckets) do s['real:' .. bucket.key] = s['real:' .. bucket.key] + bucket.sizeUs end
end

redis.call('ZADD', members_key, exact(now), call.member)
if call.waits == 1 then
  redis.call('ZADD', leases_key, exact(now), call.process)
else
  redis.call('ZREM', leases_key, call.process)
end
redis.call('ZREMRANGEBYSCORE', members_key, '-inf', '(' .. exact(now - rules.memberUs))
for _, dead in ipairs(redis.call('ZRANGEBYSCORE', leases_key, '-inf', '(' .. exact(now - rules.leaseUs))) do
  redis.call('ZREM', leases_key, dead)
  for _, id in ipairs(redis.call('ZRANGE', line_key, 0, -1)) do
    if id:sub(1, #dead + 1) == dead .. '/' and remove(id) then s.replan = 1 end
  end
end

local replies = {}
for i, op in ipairs(call.ops) do replies[i] = run[op[1]](unpack(op, 2)) end

if s.replan == 1 and now - s.replanned >= size * REPLAN then
  s.replan = 0
  if size > 0 then
    s.replanned = now
    plan_from_now()
    for _, id in ipairs(redis.call('ZRANGE', line_key, 0, -1)) do
      local entry = read(redis.call('HGET', entries_key, id) or '- 0')
      entry.turn = max(s.last, room_at(entry.costs, 'planned:'))
      take(entry.turn, entry.costs)
      redis.call('HSET', entries_key, id, written(entry.owner, entry.turn, entry.costs))
    end
  end
end

s.heard = now
local words = {}
for name, value in pairs(s) do
  if value > -huge and value ~= stored[name] then
    words[#words + 1] = name
    words[#words + 1] = exact(value)
  end
end
if #words > 0 then redis.call('HSET', state_key, unpack(words)) end
for i, key in ipairs(KEYS) do
  -- The rest is there only while somebody waits.
  if i == 1 or i == 4 or size > 0 or call.waits == 1 then redis.call('PEXPIRE', key, rules.keepMs) end
end

local drain = {}
for i, bucket in ipairs(buckets) do drain[i] = max(0, s['real:' .. bucket.key] - now) end
local certain = s.phase == 2 and 0 or pause_ms()
return { s.known, redis.call('ZCARD', members_key), size, certain, drain, replies }

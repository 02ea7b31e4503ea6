-- What a call asks for

local run = {}

local function marks_into(reply, at)
  for _, b in ipairs(at) do
    reply[#reply + 1] = b.real
    reply[#reply + 1] = b.back
    reply[#reply + 1] = b.charged
  end
end

local function grant(route, at, requests, tokens)
  for _, b in ipairs(route.at) do charge(b, at, cost_of(b, requests, tokens)) end
  local reply = { GRANTED, max(0, at - now), passed(route.cooldown), 0 }
  marks_into(reply, route.at)
  return reply
end

local function add_spare(reply, route, spare, spare_tokens)
  for _, b in ipairs(route.at) do
    local cost = cost_of(b, 1, spare_tokens)
    local filled = max(planned(b, s.plan), now + b.lagUs + rules.sliceUs)
    if cost > 0 then spare = min(spare, floor((now + b.sizeUs / 2 - filled) / cost)) end
  end
  if spare < 1 then return reply end
  reply[4] = spare
  for _, b in ipairs(route.at) do charge(b, now + rules.sliceUs, cost_of(b, 1, spare_tokens) * spare) end
  marks_into(reply, route.at)
  return reply
end

function run.enter(route, id, requests, tokens, limit, spare, spare_tokens)
  if size == 0 then s.plan, s.cursor = s.plan + 2, -1 end
  local c, at = route.cooldown, route.at
  local turn = turn_in(s.plan, at, requests, tokens, now + pause_us(c))
  if turn <= now and (c.waiting == 0 or c.phase == 0) then
    take(s.plan, at, turn)
    local reply = grant(route, now, requests, tokens)
    if c.waiting == 0 and c.phase == 0 then return add_spare(reply, route, spare, spare_tokens) end
    return reply
  end
  local wait = turn - now
  if size >= rules.maxWaiting then return { FULL, wait } end
  if wait > limit then return { LATE, wait } end
  s.order = s.order + 1
  size = size + 1
  c.waiting = c.waiting + 1
  local entry = { turn = turn, cooldown = route.name, requests = requests, tokens = tokens, keys = route.keys }
  redis.call('ZADD', line_key, s.order, id)
  redis.call('HSET', entries_key, id, entry_words(entry))
  take(s.plan, at, turn)
  return { WAIT, wait, size }
end

function run.look(route, id)
  local entry = entry_at(id)
  if not entry then return { GONE } end
  -- It may be given other buckets than those it came for.
  if entry.keys ~= route.keys then
    entry.keys, s.replan = route.keys, 1
    redis.call('HSET', entries_key, id, entry_words(entry))
  end
  local turn, requests, tokens = entry.turn, entry.requests, entry.tokens
  local c = route.cooldown
  local paused = pause_us(c)
  if paused > 0 then return { WAIT, max(paused, turn - now), 0 } end
  if c.phase ~= 0 and not is_first(id, route.name) then
    return { WAIT, max(ceil(pause.staggerMs * 1000), 1000), 0 }
  end
  if turn > now + rules.aheadUs then return { WAIT, turn - now, 0 } end
  local room = room_at(route.at, requests, tokens)
  if room > max(now, turn) then
    s.replan = 1
    return { WAIT, room - now, 0 }
  end
  local late = now - turn > rules.graceUs
  remove(id, entry)
  if late then s.replan = 1 end
  return grant(route, late and now or turn, requests, tokens)
end

function run.leave(_, id)
  local entry = entry_at(id)
  if entry then
    remove(id, entry)
    s.replan = 1
  end
  return { DONE }
end

function run.back(route, requests, tokens, ...)
  local marks = { ... }
  for i, b in ipairs(route.at) do
    give_back(b, cost_of(b, requests, tokens), marks[3 * i - 2] or 0, marks[3 * i - 1] or 0, marks[3 * i] or 0)
  end
  s.replan = 1
  return { DONE }
end

function run.more(route, requests, tokens)
  for _, b in ipairs(route.at) do charge(b, now, cost_of(b, requests, tokens)) end
  s.replan = 1
  return { DONE }
end

function run.again(route, requests, tokens, ...)
  run.back(route, requests, tokens, ...)
  return run.more(route, requests, tokens)
end

function run.report(route, at, remaining, ago, charged)
  local b = route.at[at + 1]
  if b then report(b, remaining, ago, charged) end
  s.replan = 1
  return { DONE }
end

function run.hint(route, wait_ms)
  s.replan = 1
  return { PAUSED, ceil(hint(route.cooldown, wait_ms)) }
end

function run.rejected(route, ago_ms)
  s.replan = 1
  if now_ms - ago_ms < route.cooldown.paused then return { PAUSED, 0 } end
  return run.hint(route, pause.unhintedMs)
end

function run.answered(route, trial)
  local c = route.cooldown
  if c.phase == 2 and trial == c.trial then start_ramp(c) end
  return { DONE }
end

function run.gaveUp(route, trial)
  local c = route.cooldown
  if c.phase == 2 and trial == c.trial then
    c.phase = 1
    c.opens = now_ms
  end
  return { DONE }
end

-- The call

size = redis.call('ZCARD', line_key)
read_quota()

if call.known ~= 0 and call.known ~= s.known and s.full == 1 then
  s.full, s.owed, s.replan = 0, 1, 1
end

redis.call('ZADD', members_key, now, call.member)
if call.waits == 1 then
  redis.call('ZADD', leases_key, now, call.process)
else
  redis.call('ZREM', leases_key, call.process)
end
redis.call('ZREMRANGEBYSCORE', members_key, '-inf', '(' .. string.format('%.17g', now - rules.memberUs))
local dead_by = '(' .. string.format('%.17g', now - rules.leaseUs)
for _, dead in ipairs(redis.call('ZRANGEBYSCORE', leases_key, '-inf', dead_by)) do
  redis.call('ZREM', leases_key, dead)
  forget(dead)
end

local others, alone = call.alone[1], nil
if others then
  alone = now - s.heard >= others
  if alone then s.full, s.emptied = 0, max(s.emptied, now + others) end
  s.replan = 1
end
local at = {}
for i, rule in ipairs(call.buckets) do
  local b = bucket_of(rule)
  if others and not alone then b.real = max(b.real, now) + (call.alone[i + 1] or 0) end
  at[i] = b
end
local routes = {}
for i, rule in ipairs(call.routes) do
  local route, keys = { name = rule.cooldown, cooldown = cooldown_at(rule.cooldown), at = {} }, {}
  for j, bucket in ipairs(rule.buckets) do
    route.at[j] = at[bucket + 1]
    keys[j] = call.buckets[bucket + 1].key
  end
  route.keys = table.concat(keys, '\0')
  routes[i] = route
end

plan_line()
local replies = {}
for i, op in ipairs(call.ops) do replies[i] = run[op[1]](routes[op[2] + 1], unpack(op, 3)) end

s.heard = now
local words = {}
local function write(field, packed)
  if packed == stored[field] then return end
  words[#words + 1] = field
  words[#words + 1] = packed
end
write('q', quota_words())
for key, b in pairs(buckets) do if b then write(key, bucket_words(b)) end end
for name, c in pairs(cooldowns) do write('c:' .. name, cooldown_words(c)) end
write_all(state_key, words)
for i, key in ipairs(KEYS) do
  -- The rest is there only while somebody waits.
  if i == 1 or i == 4 or size > 0 or call.waits == 1 then redis.call('PEXPIRE', key, rules.keepMs) end
end

local paused, drain = {}, {}
for i, route in ipairs(routes) do paused[i] = route.cooldown.phase == 2 and 0 or pause_ms(route.cooldown) end
for i, b in ipairs(at) do drain[i] = max(0, b.real - now) end
return { s.known, redis.call('ZCARD', members_key), size, paused, drain, replies }

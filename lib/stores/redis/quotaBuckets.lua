-- A quota that processes share; one script, in four parts: quotaBuckets.lua, quotaCooldowns.lua, quotaLine.lua, quota.lua.
-- SharedQuota.ts decides the same, and says why; change both.
--
-- KEYS: 1 state (hash), 2 line (zset: id by order), 3 entries (hash: id -> who waits),
--       4 members (zset: who counts, by when heard), 5 leases (zset: who waits, by when heard)
-- ARGV: 1 rules, 2 call, both JSON; see QuotaCall.ts
-- All times are whole microseconds, below 2^53, and in the cooldown milliseconds. MessagePack keeps them exactly.
--
-- Fields of the state: `q` the quota; `r:layer`, `t:layer` buckets of requests and tokens; `c:name` cooldowns.

local state_key, line_key, entries_key, members_key, leases_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local rules, call = cjson.decode(ARGV[1]), cjson.decode(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local now_ms = now / 1000
local max, min, ceil, floor = math.max, math.min, math.ceil, math.floor
local pack, read = cmsgpack.pack, cmsgpack.unpack
local DONE, GRANTED, WAIT, FULL, LATE, GONE, PAUSED = 0, 1, 2, 3, 4, 5, 6
local MINUTE, NEVER = 60000000, -1e15
-- A bucket that has been full for so long is forgotten: by then nothing is out that it could still be told of.
local REST = 600000000
-- Arguments of one command.
local MOST_WORDS = 1000

local s, stored = {}, {}

local function quota_words()
  return pack(s.known, s.full, s.owed, s.emptied, s.replan, s.replanned, s.order, s.heard, s.plan, s.cursor, s.base)
end

local function read_quota()
  local raw = redis.call('HGET', state_key, 'q')
  if raw then
    s.known, s.full, s.owed, s.emptied, s.replan, s.replanned, s.order, s.heard, s.plan, s.cursor, s.base = read(raw)
  else
    s.known, s.full, s.owed, s.emptied = now, call.known == 0 and 1 or 0, 0, NEVER
    s.replan, s.replanned, s.order, s.heard, s.plan, s.cursor, s.base = 0, 0, 0, NEVER, 2, -1, 0
  end
  stored.q = raw
end

-- Buckets

local buckets = {}

local function bucket_words(b)
  return pack(
    b.perMinute, b.sizeUs, b.lagUs, b.real, b.back, b.charged, b.reported, b.base, b.born, b.emptied,
    b.planned[0], b.plan[0], b.held[0], b.planned[1], b.plan[1], b.held[1])
end

local function read_bucket(key, raw)
  local b = { unit = key:sub(1, 1), layer = key:sub(3), planned = {}, plan = {}, held = {} }
  b.perMinute, b.sizeUs, b.lagUs, b.real, b.back, b.charged, b.reported, b.base, b.born, b.emptied,
    b.planned[0], b.plan[0], b.held[0], b.planned[1], b.plan[1], b.held[1] = read(raw)
  if b.born == 1 and s.owed == 1 then
    b.real, b.born = b.real + b.sizeUs, 0
  end
  if b.emptied ~= s.emptied then
    b.real, b.emptied = max(b.real, s.emptied + b.sizeUs), s.emptied
  end
  return b
end

-- A few fields are looked at whenever there is a new bucket: so there are never many more than are in use.
local function tidy()
  for _, key in ipairs(redis.call('HRANDFIELD', state_key, 3)) do
    local raw = redis.call('HGET', state_key, key)
    if key:sub(1, 2) == 'c:' then
      local phase, opens, _, _, _, _, waiting = read(raw)
      if phase ~= 1 and waiting == 0 and opens < now_ms - REST / 1000 then redis.call('HDEL', state_key, key) end
    elseif key ~= 'q' and not buckets[key] then
      local b = read_bucket(key, raw)
      if b.real < now - REST then
        s.base = max(s.base, b.back, b.charged)
        redis.call('HDEL', state_key, key)
      end
    end
  end
end

-- What was charged at other rates is not undone any more: it may have come back since.
local function set_rate(b, rule)
  b.lagUs = rule.lagUs
  if b.perMinute == rule.perMinute and b.sizeUs == rule.sizeUs then return end
  local level = b.sizeUs - max(0, b.real - now)
  b.real = now + rule.sizeUs - min(rule.sizeUs, floor(level * b.perMinute / rule.perMinute))
  b.charged = b.charged + 1
  b.base = b.charged
  b.perMinute, b.sizeUs = rule.perMinute, rule.sizeUs
  b.plan, s.replan = { [0] = 0, 0 }, 1
end

local function bucket_of(rule)
  local key = rule.key
  local raw = redis.call('HGET', state_key, key)
  stored[key] = raw
  if raw then
    buckets[key] = read_bucket(key, raw)
    set_rate(buckets[key], rule)
    return buckets[key]
  end
  tidy()
  local real = s.full == 1 and s.known or s.known + rule.sizeUs
  buckets[key] = {
    unit = key:sub(1, 1), layer = key:sub(3), perMinute = rule.perMinute, sizeUs = rule.sizeUs, lagUs = rule.lagUs,
    real = max(real, s.emptied + rule.sizeUs), back = s.base, charged = s.base, reported = -1, base = s.base,
    born = s.full, emptied = s.emptied,
    planned = { [0] = 0, 0 }, plan = { [0] = 0, 0 }, held = { [0] = 0, 0 },
  }
  return buckets[key]
end

-- One that somebody else waits for.
local function bucket_at(key)
  if buckets[key] == nil then
    local raw = redis.call('HGET', state_key, key)
    stored[key] = raw
    buckets[key] = raw and read_bucket(key, raw)
  end
  return buckets[key] or nil
end

local function cost_of(b, requests, tokens)
  return ceil((b.unit == 'r' and requests or tokens) * MINUTE / b.perMinute)
end

local function slack_of(b, cost)
  local slack = b.sizeUs - cost
  return slack >= b.lagUs and slack or 0
end

local function charge(b, at, cost)
  if cost == 0 then return end
  b.real = max(b.real, at + b.lagUs) + cost
  b.charged = b.charged + cost
end

local function give_back(b, cost, drained_at, back, charged)
  if charged < b.base then return end
  local left = drained_at - (b.back - back) - now - b.lagUs
  local given = max(0, min(cost, left))
  b.real = b.real - given
  b.back = b.back + given
end

local function report(b, remaining, ago, charged)
  local level = floor(remaining * MINUTE / b.perMinute)
  if charged >= 0 then
    if charged < b.base or charged < b.reported then return end
    b.reported = charged
    level = level + max(0, ago - b.lagUs) - (b.charged - charged)
  end
  b.real = max(b.real, now + b.sizeUs - level)
end

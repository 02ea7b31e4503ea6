-- Lanes of conversations that processes share. SharedTurns.ts decides the same, and says why; change both.
--
-- KEYS: 1 state (hash), 2 holders (hash: lane -> "order token process"). The rest are sets of words, in order (zset, score
--       0): 3 line ("lane order process"), 4 places ("process order lane"), 5 news ("process order token", token 0:
--       superseded). 6 leases (zset: process by when heard), 7 epochs (hash: by process)
-- ARGV: 1 rules, 2 call, both JSON; see LanesCall.ts
-- All times are whole microseconds, below 2^53. Orders and tokens are written with 16 digits, so that they sort.

local state_key, holders_key, line_key, places_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local news_key, leases_key, epochs_key = KEYS[5], KEYS[6], KEYS[7]
local rules, call = cjson.decode(ARGV[1]), cjson.decode(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local process = call.process
local max = math.max
local DONE, HOLDS, WAITS, FULL, LOST = 0, 1, 2, 3, 4

local function digits(number)
  return string.format('%016.0f', number)
end

local stored = redis.call('HMGET', state_key, 'known', 'last', 'opens')
local known, last, opens = tonumber(stored[1]), tonumber(stored[2]), tonumber(stored[3])

local epoch = tonumber(redis.call('HGET', epochs_key, process) or nil)
if epoch and epoch > call.epoch then return { known or 0, 0, 0, {}, {} } end

if not known then
  known, last = now, 0
  opens = call.known ~= 0 and now + rules.guardUs or 0
elseif call.known ~= 0 and call.known ~= known and opens == 0 then
  opens = known + rules.guardUs
end

local function rising()
  last = max(now, last + 1)
  return last
end

-- Words that begin with this one

local function first(key, word)
  return redis.call('ZRANGEBYLEX', key, '[' .. word .. ' ', '(' .. word .. '!', 'LIMIT', 0, 1)[1]
end

local function all(key, word)
  return redis.call('ZRANGEBYLEX', key, '[' .. word .. ' ', '(' .. word .. '!')
end

local function count(key, word)
  return redis.call('ZLEXCOUNT', key, '[' .. word .. ' ', '(' .. word .. '!')
end

local function drop(key, word)
  redis.call('ZREMRANGEBYLEX', key, '[' .. word .. ' ', '(' .. word .. '!')
end

local function parts(words)
  return words:match('^(%S+) (%S+) (%S+)$')
end

-- Lanes

local function hold(lane, order, token, owner)
  redis.call('HSET', holders_key, lane, order .. ' ' .. digits(token) .. ' ' .. owner)
end

local function holder_of(lane)
  local holder = redis.call('HGET', holders_key, lane)
  if holder then return parts(holder) end
end

local function start_next(lane)
  if opens > now or redis.call('HEXISTS', holders_key, lane) == 1 then return end
  local head = first(line_key, lane)
  if not head then return end
  local _, order, owner = parts(head)
  local token = rising()
  redis.call('ZREM', line_key, head)
  hold(lane, order, token, owner)
  redis.call('ZADD', news_key, 0, owner .. ' ' .. order .. ' ' .. digits(token))
end

local function end_place(place)
  if redis.call('ZREM', places_key, place) == 0 then return end
  local owner, order, lane = parts(place)
  drop(news_key, owner .. ' ' .. order)
  if holder_of(lane) == order then
    redis.call('HDEL', holders_key, lane)
    start_next(lane)
  else
    redis.call('ZREM', line_key, lane .. ' ' .. order .. ' ' .. owner)
  end
end

local function supersede(lane)
  local order, _, owner = holder_of(lane)
  if order then redis.call('ZADD', news_key, 0, owner .. ' ' .. order .. ' 0') end
  for _, waiting in ipairs(all(line_key, lane)) do
    _, order, owner = parts(waiting)
    redis.call('ZREM', line_key, waiting)
    redis.call('ZADD', news_key, 0, owner .. ' ' .. order .. ' 0')
  end
end

-- What a call asks for

local named = {}
local run = {}

function run.enter(lane, max_waiting, supersedes)
  if supersedes == 1 then supersede(lane) end
  local waiting = count(line_key, lane)
  local held, token = holder_of(lane)
  if supersedes == 0 and waiting >= max_waiting and (held or waiting > 0 or opens > now) then
    return { FULL, held and max(0, now - tonumber(token)) or 0, waiting }
  end
  local order = rising()
  local name = digits(order)
  redis.call('ZADD', places_key, 0, process .. ' ' .. name .. ' ' .. lane)
  named[process .. ' ' .. name .. ' ' .. lane] = true
  if not held and waiting == 0 and opens <= now then
    hold(lane, name, order, process)
    return { HOLDS, order, order }
  end
  redis.call('ZADD', line_key, 0, lane .. ' ' .. name .. ' ' .. process)
  return { WAITS, order, waiting + 1 }
end

function run.again(lane, order, token)
  local name = digits(order)
  local place = process .. ' ' .. name .. ' ' .. lane
  last = max(last, order, token)
  local held, held_token = holder_of(lane)
  if held == name then
    named[place] = true
    return { HOLDS, order, tonumber(held_token) }
  end
  if token > 0 then
    if held then return { LOST } end
    named[place] = true
    redis.call('ZADD', places_key, 0, place)
    hold(lane, name, token, process)
    return { HOLDS, order, token }
  end
  named[place] = true
  redis.call('ZADD', places_key, 0, place)
  if redis.call('ZSCORE', news_key, process .. ' ' .. name .. ' 0') then return { WAITS, order, 1 } end
  local waiting = lane .. ' ' .. name .. ' ' .. process
  redis.call('ZADD', line_key, 0, waiting)
  local position = redis.call('ZLEXCOUNT', line_key, '[' .. lane .. ' ', '[' .. waiting)
  start_next(lane)
  return { WAITS, order, position }
end

function run.leave(lane, order)
  end_place(process .. ' ' .. digits(order) .. ' ' .. lane)
  return { DONE }
end

function run.look()
  return { DONE }
end

-- The call

for _, dead in ipairs(redis.call('ZRANGEBYSCORE', leases_key, '-inf', '(' .. digits(now - rules.leaseUs))) do
  redis.call('ZREM', leases_key, dead)
  redis.call('HDEL', epochs_key, dead)
  for _, place in ipairs(all(places_key, dead)) do end_place(place) end
  if dead == process then epoch = nil end
end

local former = epoch and epoch < call.epoch and all(places_key, process) or {}
redis.call('ZADD', leases_key, digits(now), process)
if epoch ~= call.epoch then redis.call('HSET', epochs_key, process, call.epoch) end

local replies = {}
for i, op in ipairs(call.ops) do replies[i] = run[op[1]](unpack(op, 2)) end

for _, place in ipairs(former) do
  if not named[place] then end_place(place) end
end

if opens > 0 and now >= opens then
  opens = -1
  for _, waiting in ipairs(redis.call('ZRANGE', line_key, 0, -1)) do start_next((parts(waiting))) end
end

local news = {}
for i, words in ipairs(all(news_key, process)) do
  local _, order, token = parts(words)
  news[i] = { tonumber(order), tonumber(token) }
  -- That its turn is over it has to hear until it leaves.
  if token ~= '0' then redis.call('ZREM', news_key, words) end
end

redis.call('HSET', state_key, 'known', digits(known), 'last', digits(last), 'opens', string.format('%.0f', opens))
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, rules.keepMs) end

return { known, epoch and 0 or 1, count(places_key, process), news, replies }

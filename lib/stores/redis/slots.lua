-- Places in a ceiling that processes share. SharedPlaces.ts decides the same, and says why; change both.
--
-- KEYS: 1 state (hash), 2 holders (hash: process -> "held demand turn"), 3 leases (zset: process by when heard),
--       4 members (zset: who counts, by when heard)
-- ARGV: 1 rules, 2 call, both JSON; see SlotsCall.ts
-- All times are whole microseconds, below 2^53.

local state_key, holders_key, leases_key, members_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local rules, call = cjson.decode(ARGV[1]), cjson.decode(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local max, min, floor = math.max, math.min, math.floor

local function exact(number)
  return string.format('%.17g', number)
end

-- State

local words = redis.call('HMGET', state_key, 'known', 'closed', 'order', 'heard')
local known = tonumber(words[1] or now)
local closed = tonumber(words[2] or (call.known == 0 and 0 or now + rules.leaseUs))
local order = tonumber(words[3] or 0)
local heard = tonumber(words[4] or -math.huge)

if call.known ~= 0 and call.known ~= known then closed = max(closed, known + rules.leaseUs) end
if call.returned == 1 and now - heard >= rules.othersUs then closed = max(closed, now + rules.othersUs) end

local function drop(process)
  redis.call('HDEL', holders_key, process)
  redis.call('ZREM', leases_key, process)
end

redis.call('ZADD', members_key, exact(now), call.member)
redis.call('ZREMRANGEBYSCORE', members_key, '-inf', '(' .. exact(now - rules.memberUs))
if call.former ~= '' then drop(call.former) end
for _, dead in ipairs(redis.call('ZRANGEBYSCORE', leases_key, '-inf', '(' .. exact(now - rules.leaseUs))) do
  drop(dead)
end

local function next_turn()
  order = order + 1
  return order
end

local holders, own = {}, nil
local raw = redis.call('HGETALL', holders_key)
for i = 1, #raw, 2 do
  local held, demand, turn = raw[i + 1]:match('^(%S+) (%S+) (%S+)$')
  local holder = { held = tonumber(held), demand = tonumber(demand), turn = tonumber(turn) }
  holders[#holders + 1] = holder
  if raw[i] == call.process then own = holder end
end
if own == nil then
  own = { held = call.taken, turn = next_turn() }
  holders[#holders + 1] = own
else
  local held = max(min(own.held, call.keep), call.taken)
  if held < own.held then own.turn = next_turn() end
  own.held = held
end
own.demand = call.taken + call.wanted

-- Whose are how many

local function free()
  local left = call.limit
  for _, holder in ipairs(holders) do left = left - holder.held end
  return left
end

local function by_demand(a, b)
  if a.demand ~= b.demand then return a.demand < b.demand end
  return a.turn < b.turn
end

table.sort(holders, by_demand)
local left, from, part = call.limit, 1, 0
while from <= #holders do
  local holder = holders[from]
  part = floor(left / (#holders - from + 1))
  if holder.demand > part then break end
  holder.target = holder.demand
  left = left - holder.demand
  from = from + 1
end

local function rank(holder)
  if part > 0 then return holder.held > part and -1 or 0 end
  return holder.held > 0 and 1 / holder.turn or -1
end

local rest = {}
for i = from, #holders do rest[#rest + 1] = holders[i] end
table.sort(rest, function(a, b)
  local first, second = rank(a), rank(b)
  if first ~= second then return first < second end
  return a.turn < b.turn
end)
for i, holder in ipairs(rest) do holder.target = part + (i <= left - part * #rest and 1 or 0) end

-- What is given

local was_empty = own.held == 0
if now >= closed then
  own.held = own.held + max(0, min(own.target - own.held, free()))
  local wanting = false
  for _, holder in ipairs(holders) do wanting = wanting or holder.held < holder.demand end
  if not wanting then own.held = own.held + max(0, min(call.spare, floor(free() / 2))) end
end
if was_empty and own.held > 0 then own.turn = next_turn() end

local pressed = free() < 0
for _, holder in ipairs(holders) do pressed = pressed or (holder ~= own and holder.held < holder.target) end

if own.held == 0 and own.demand == 0 then
  drop(call.process)
else
  redis.call('HSET', holders_key, call.process, own.held .. ' ' .. own.demand .. ' ' .. own.turn)
  redis.call('ZADD', leases_key, exact(now), call.process)
end
local state = { 'known', exact(known), 'closed', exact(closed), 'order', order, 'heard', exact(now) }
redis.call('HSET', state_key, unpack(state))
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, rules.keepMs) end

local members = redis.call('ZCARD', members_key)
return { known, members, own.held - call.keep, pressed and own.target or -1, own.held < own.target and 1 or 0 }

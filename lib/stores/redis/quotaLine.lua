-- The line: one for all routes. An entry is what someone waits for, as it was asked, with the turn that is planned for it.

local REPLAN, CHUNK = 200, 20
local size

-- Buckets as they will be once everyone in line has had their turn. There are two plans: the last one, and the one that is
-- being made. What another plan says of a bucket says nothing.
local function planned(b, plan)
  local slot = plan % 2
  if b.plan[slot] ~= plan then b.plan[slot], b.planned[slot], b.held[slot] = plan, b.real, 0 end
  return max(b.planned[slot], b.real)
end

local costs, ready = {}, {}

-- When there is room in all of them; costs and ready then tell of each.
local function turn_in(plan, at, requests, tokens, start)
  local turn, slot = start, plan % 2
  for i, b in ipairs(at) do
    local cost = cost_of(b, requests, tokens)
    local room = planned(b, plan)
    room = max(b.held[slot], cost > 0 and room - slack_of(b, cost) or 0)
    costs[i], ready[i] = cost, room
    if room > turn then turn = room end
  end
  return turn
end

-- Takes what turn_in has just found. Only in the layer that one waits longest for nobody may pass it: the rest would lie idle
-- meanwhile. Buckets of one layer are neighbours.
local function take(plan, at, turn)
  local slot = plan % 2
  for i, b in ipairs(at) do
    local room = ready[i]
    if i > 1 and at[i - 1].layer == b.layer then room = max(room, ready[i - 1]) end
    if at[i + 1] and at[i + 1].layer == b.layer then room = max(room, ready[i + 1]) end
    if turn <= now or room >= turn then
      if costs[i] > 0 then b.planned[slot] = max(planned(b, plan), turn + b.lagUs) + costs[i] end
      if turn > now then b.held[slot] = turn end
    end
  end
end

local function room_at(at, requests, tokens)
  local room = 0
  for _, b in ipairs(at) do
    local cost = cost_of(b, requests, tokens)
    if cost > 0 then room = max(room, b.real - slack_of(b, cost)) end
  end
  return room
end

local function entry_words(e)
  return pack(e.turn, e.cooldown, e.requests, e.tokens, e.keys)
end

local function entry_from(turn, cooldown, requests, tokens, keys)
  return { turn = turn, cooldown = cooldown, requests = requests, tokens = tokens, keys = keys }
end

local function entry_at(id)
  local raw = redis.call('HGET', entries_key, id)
  return raw and entry_from(read(raw))
end

local function remove(id, entry)
  redis.call('ZREM', line_key, id)
  redis.call('HDEL', entries_key, id)
  size = size - 1
  local c = cooldown_at(entry.cooldown)
  c.waiting = c.waiting - 1
end

local function forget(process)
  for _, id in ipairs(redis.call('ZRANGE', line_key, 0, -1)) do
    if id:sub(1, #process + 1) == process .. '/' then
      local entry = entry_at(id)
      if entry then
        remove(id, entry)
        s.replan = 1
      end
    end
  end
end

local function is_first(id, name)
  local c = cooldown_at(name)
  while true do
    local found = redis.call('ZRANGEBYSCORE', line_key, '(' .. c.after, '+inf', 'WITHSCORES', 'LIMIT', 0, CHUNK)
    if #found == 0 then return false end
    for i = 1, #found, 2 do
      if found[i] == id then return true end
      local entry = entry_at(found[i])
      if entry and entry.cooldown == name then return false end
      c.after = tonumber(found[i + 1])
    end
  end
end

local function write_all(key, words)
  for first = 1, #words, MOST_WORDS do
    redis.call('HSET', key, unpack(words, first, min(first + MOST_WORDS - 1, #words)))
  end
end

local routes_of = {}

local function buckets_at(keys)
  local at = routes_of[keys]
  if not at then
    at = {}
    for key in keys:gmatch('[^%z]+') do at[#at + 1] = bucket_at(key) end
    routes_of[keys] = at
  end
  return at
end

-- A part of the line at a time, so that no call takes long, and for a long line not with every change: its turns are checked
-- when they come.
local function plan_line()
  if s.cursor < 0 then
    if s.replan == 0 or now - s.replanned < size * REPLAN then return end
    s.replan = 0
    if size == 0 then return end
    s.cursor, s.replanned = 0, now
  end
  local plan, starts, words = s.plan + 1, {}, {}
  local found = redis.call('ZRANGEBYSCORE', line_key, '(' .. s.cursor, '+inf', 'WITHSCORES', 'LIMIT', 0, rules.planMost)
  local ids = {}
  for i = 1, #found, 2 do ids[#ids + 1] = found[i] end
  for i, raw in ipairs(#ids > 0 and redis.call('HMGET', entries_key, unpack(ids)) or {}) do
    if raw then
      local turn, cooldown, requests, tokens, keys = read(raw)
      local at = buckets_at(keys)
      local start = starts[cooldown] or now + pause_us(cooldown_at(cooldown))
      starts[cooldown] = start
      local new = turn_in(plan, at, requests, tokens, start)
      take(plan, at, new)
      if new ~= turn then
        words[#words + 1] = ids[i]
        words[#words + 1] = pack(new, cooldown, requests, tokens, keys)
      end
    end
  end
  write_all(entries_key, words)
  if #ids < rules.planMost then
    s.plan, s.cursor = plan, -1
  else
    s.cursor = tonumber(found[#found])
  end
end

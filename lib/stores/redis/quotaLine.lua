-- The line: one for all routes. An entry is what someone waits for, as it was asked, with the turn that is planned for it.

local REPLAN, CHUNK = 100, 100
local size

-- Buckets as they will be once everyone in line has had their turn. A plan that is no longer the last one says nothing.
local function planned(b)
  if b.plan ~= s.plan then b.plan, b.planned, b.held = s.plan, b.real, 0 end
  return max(b.planned, b.real)
end

-- When there is room in all of them, and for each layer when there is room in that.
local function turn_in(at, requests, tokens, start)
  local turn, ready = start, {}
  for _, b in ipairs(at) do
    local cost = cost_of(b, requests, tokens)
    local room = planned(b)
    room = max(b.held, cost > 0 and room - slack_of(b, cost) or 0)
    ready[b.layer] = max(ready[b.layer] or 0, room)
    turn = max(turn, room)
  end
  return turn, ready
end

-- Only in the layer that it waits longest for nobody may pass it: the rest would lie idle meanwhile.
local function take(at, requests, tokens, turn, ready)
  for _, b in ipairs(at) do
    if turn <= now or ready[b.layer] >= turn then
      local cost = cost_of(b, requests, tokens)
      if cost > 0 then b.planned = max(planned(b), turn + b.lagUs) + cost end
      if turn > now then b.held = turn end
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

local function entry_from(turn, cooldown, requests, tokens, ...)
  return { turn = turn, cooldown = cooldown, requests = requests, tokens = tokens, keys = { ... } }
end

local function entry_words(e)
  return pack(e.turn, e.cooldown, e.requests, e.tokens, unpack(e.keys))
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

-- For a long line not with every change: its turns are checked when they come.
local function plan_line()
  if s.replan == 0 or now - s.replanned < size * REPLAN then return end
  s.replan = 0
  if size == 0 then return end
  s.replanned = now
  s.plan = s.plan + 1
  local starts, words = {}, {}
  local ids = redis.call('ZRANGE', line_key, 0, -1)
  for first = 1, #ids, MOST_WORDS do
    local last = min(first + MOST_WORDS - 1, #ids)
    for i, raw in ipairs(redis.call('HMGET', entries_key, unpack(ids, first, last))) do
      if raw then
        local e = entry_from(read(raw))
        local start = starts[e.cooldown] or now + pause_us(cooldown_at(e.cooldown))
        starts[e.cooldown] = start
        local at = {}
        for _, key in ipairs(e.keys) do at[#at + 1] = bucket_at(key) end
        local turn, ready = turn_in(at, e.requests, e.tokens, start)
        take(at, e.requests, e.tokens, turn, ready)
        if turn ~= e.turn then
          e.turn = turn
          words[#words + 1] = ids[first + i - 1]
          words[#words + 1] = entry_words(e)
        end
      end
    end
  end
  write_all(entries_key, words)
end

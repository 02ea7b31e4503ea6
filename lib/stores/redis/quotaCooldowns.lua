-- Cooldowns: as in limits/Cooldown.ts. Phases: 0 idle, 1 paused, 2 trial, 3 ramp. `waiting`: how many wait who share it;
-- none of them has an order up to `after`.

local pause = rules.cooldown
local TRIAL_LOOK = 250000
local cooldowns = {}

local function cooldown_words(c)
  return pack(c.phase, c.opens, c.floor, c.paused, c.ramp_ends, c.trial, c.waiting, c.after)
end

local function cooldown_at(name)
  if cooldowns[name] then return cooldowns[name] end
  local c = { phase = 0, opens = NEVER, floor = NEVER, paused = NEVER, ramp_ends = NEVER, trial = 0, waiting = 0, after = 0 }
  local key = 'c:' .. name
  local raw = redis.call('HGET', state_key, key)
  if raw then c.phase, c.opens, c.floor, c.paused, c.ramp_ends, c.trial, c.waiting, c.after = read(raw) end
  stored[key] = raw
  cooldowns[name] = c
  return c
end

local function pause_ms(c)
  if c.phase == 3 and now_ms >= c.ramp_ends then c.phase = 0 end
  if c.phase == 0 then return 0 end
  return max(0, ceil(c.opens - now_ms))
end

local function gap_ms(c)
  if pause.rampMs == 0 then return 0 end
  local left = max(0, c.ramp_ends - now_ms) / pause.rampMs
  return left * pause.staggerMs * (1 + call.random)
end

local function start_ramp(c)
  c.phase = 3
  c.ramp_ends = now_ms + pause.rampMs
  c.opens = now_ms + gap_ms(c)
end

local function hint(c, wait_ms)
  local floor_ms = now_ms + wait_ms
  if not (wait_ms > 0) or floor_ms <= c.floor then return 0 end
  local added = call.random * min(1000, pause.jitter * wait_ms)
  local paused = c.phase == 1 and now_ms < c.opens
  c.opens = max(paused and c.opens or NEVER, floor_ms + added)
  c.floor = floor_ms
  if not paused then c.paused = now_ms end
  c.phase = 1
  return wait_ms
end

local function passed(c)
  if c.phase == 1 then
    c.phase = 2
    c.opens = now_ms + pause.trialMs
    c.trial = c.trial + 1
    return c.trial
  end
  if c.phase == 2 then start_ramp(c) elseif c.phase == 3 then c.opens = now_ms + gap_ms(c) end
  return 0
end

local function pause_us(c)
  local us = pause_ms(c) * 1000
  return c.phase == 2 and min(us, TRIAL_LOOK) or us
end

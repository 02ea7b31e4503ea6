-- What tenants have spent on one day, over all processes. SpendSheet.ts decides the same, and says why; change both.
--
-- KEYS: 1 the day (hash: t<tenant> -> total, p<member>:<tenant> -> what that process has spent)
-- ARGV: 1 how long the day is kept, in ms, 2 member, then for each tenant its name and what this process has spent in all.
-- Amounts are whole numbers below 2^53. Returns the total of each tenant.

local day, keep, member = KEYS[1], ARGV[1], ARGV[2]
local totals = {}

for i = 3, #ARGV, 2 do
  local total, mine = 't' .. ARGV[i], 'p' .. member .. ':' .. ARGV[i]
  local more = tonumber(ARGV[i + 1]) - tonumber(redis.call('HGET', day, mine) or 0)
  if more > 0 then
    redis.call('HSET', day, mine, ARGV[i + 1])
    totals[#totals + 1] = redis.call('HINCRBY', day, total, string.format('%.0f', more))
  else
    totals[#totals + 1] = tonumber(redis.call('HGET', day, total) or 0)
  end
end
redis.call('PEXPIRE', day, keep)
return totals

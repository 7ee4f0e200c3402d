-- Shared head of every script. Argo CD gives `obj`; only the base and table libraries are there.
local meta, spec, status = obj.metadata or {}, obj.spec or {}, obj.status or {}

local function say(health, message)
  return { status = health, message = message or "" }
end

-- Told by an older generation of the object: says nothing about the object as it is now.
local function stale(generation)
  return generation ~= nil and meta.generation ~= nil and generation < meta.generation
end

local function condition(name, list)
  for _, c in ipairs(list or status.conditions or {}) do
    if c.type == name and not stale(c.observedGeneration) then
      return c
    end
  end
  return nil
end

local function holds(name, list)
  local c = condition(name, list)
  return c ~= nil and c.status == "True", c and c.message
end

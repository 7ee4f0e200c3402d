-- kinds: argoproj.io/Application
-- source: argo-cd v3.6.1 pkg/apis/application/v1alpha1/types.go ApplicationStatus; the check was taken out in 1.8 (issue 3781)
-- The child's own verdict counts only if it is about the spec that the parent has just written, and about a finished sync.

-- Status is written by Go, which fills in empty structs that the spec leaves out: nothing, "", false, 0 and {} are equal.
local function empty(value)
  return value == nil or value == "" or value == false or value == 0 or (type(value) == "table" and next(value) == nil)
end
local function same(a, b)
  if type(a) ~= "table" or type(b) ~= "table" then
    return a == b or (empty(a) and empty(b))
  end
  for key, value in pairs(a) do
    if not same(value, b[key]) then
      return false
    end
  end
  for key, value in pairs(b) do
    if a[key] == nil and not empty(value) then
      return false
    end
  end
  return true
end

local sync, operation, health = status.sync or {}, status.operationState or {}, status.health or {}
local compared = sync.comparedTo
if compared == nil or health.status == nil then
  return say("Progressing", "not compared yet")
end
if (spec.source ~= nil and not same(spec.source, compared.source))
    or (spec.sources ~= nil and not same(spec.sources, compared.sources))
    or not same(spec.destination, compared.destination)
    or not same(spec.ignoreDifferences, compared.ignoreDifferences) then
  return say("Progressing", "the last comparison is about an older spec")
end
local notes = meta.annotations or {}
if notes["argocd.argoproj.io/refresh"] ~= nil then
  return say("Progressing", "a refresh is due")
end
if obj.operation ~= nil or operation.phase == "Running" or operation.phase == "Terminating" then
  return say("Progressing", operation.message or "an operation is due")
end
local result = operation.syncResult or {}
local current = same(result.revision, sync.revision) and same(result.revisions, sync.revisions)
if operation.phase == "Failed" or operation.phase == "Error" then
  if current then
    return say("Degraded", operation.message)
  end
  return say("Progressing", "the last sync failed, of another revision")
end
-- Out of sync after a good sync of this revision is drift, or something that waits for a prune: no reason to wait.
if sync.status ~= "Synced" and not (operation.phase == "Succeeded" and current) then
  local automated = (spec.syncPolicy or {}).automated
  if sync.status == "OutOfSync" and (automated == nil or automated.enabled == false) then
    return say("Suspended", "waits to be synced by hand")
  end
  return say("Progressing", "not synced yet")
end
if health.status == "Missing" or health.status == "Unknown" then
  return say("Progressing", health.message or health.status)
end
return say(health.status, health.message)

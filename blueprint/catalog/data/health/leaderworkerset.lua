-- kinds: leaderworkerset.x-k8s.io/LeaderWorkerSet
-- source: lws v0.7.0 api/leaderworkerset/v1 LeaderWorkerSetStatus, pkg/controllers/leaderworkerset_controller.go updateConditions
-- The conditions carry no generation, so the counts are looked at as well.
local wanted = spec.replicas or 1
local ready, updated, exist = status.readyReplicas or 0, status.updatedReplicas or 0, status.replicas or 0
local partition = ((spec.rolloutStrategy or {}).rollingUpdateConfiguration or {}).partition or 0
local counts = ready .. " of " .. wanted .. " groups ready, " .. updated .. " updated"
if status.conditions == nil then
  return say("Progressing", "its controller has not judged it yet")
end
local updating, message = holds("UpdateInProgress")
if updating then
  return say("Progressing", message)
end
if holds("Available") and ready >= wanted and updated >= wanted - partition and exist == wanted then
  return say("Healthy", counts)
end
return say("Progressing", counts)

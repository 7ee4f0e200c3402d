-- kinds: constraints.gatekeeper.sh/* mutations.gatekeeper.sh/Assign mutations.gatekeeper.sh/AssignMetadata mutations.gatekeeper.sh/AssignImage mutations.gatekeeper.sh/ModifySet
-- source: gatekeeper v3.23.1 apis/status/v1beta1 ConstraintPodStatusStatus, MutatorPodStatusStatus
local waiting = "no Gatekeeper pod has reported yet"
local enforced = false
for _, pod in ipairs(status.byPod or {}) do
  if stale(pod.observedGeneration) then
    waiting = "a Gatekeeper pod has not seen this generation yet"
    enforced = false
    break
  end
  for _, e in ipairs(pod.errors or {}) do
    return say("Degraded", e.message)
  end
  for _, point in ipairs(pod.enforcementPointsStatus or {}) do
    if point.state == "error" then
      return say("Degraded", point.message)
    end
  end
  if pod.enforced ~= true then
    return say("Progressing", "a Gatekeeper pod does not enforce it yet")
  end
  enforced = true
end
return enforced and say("Healthy", "") or say("Progressing", waiting)

-- kinds: kueue.x-k8s.io/Workload
-- source: kueue v0.17.0 apis/kueue/v1beta2/workload_types.go (conditions and their reasons)
local finished = condition("Finished")
if finished ~= nil and finished.status == "True" then
  return say(finished.reason == "Failed" and "Degraded" or "Healthy", finished.message)
end
if spec.active == false then
  return say("Suspended", "deactivated")
end
local admitted, message = holds("Admitted")
if admitted then
  local ready = condition("PodsReady")
  if ready ~= nil and ready.status ~= "True" then
    return say("Progressing", ready.message)
  end
  return say("Healthy", message)
end
local evicted, why = holds("Evicted")
if evicted then
  return say("Suspended", why)
end
local reserved = condition("QuotaReserved")
if reserved ~= nil and reserved.status == "True" then
  return say("Progressing", "quota is reserved, its admission checks are not ready")
end
return say("Suspended", reserved and reserved.message or "waits for quota")

-- kinds: ray.io/RayService
-- source: kuberay v1.5.0 ray-operator/apis/ray/v1/rayservice_types.go RayServiceStatuses
if stale(status.observedGeneration) then
  return say("Progressing", "its controller has not seen this generation yet")
end
local ready = condition("Ready")
if ready == nil then
  return say(status.serviceStatus == "Running" and "Healthy" or "Progressing", "")
end
if ready.status == "True" then
  local upgrading, message = holds("UpgradeInProgress")
  return say(upgrading and "Progressing" or "Healthy", upgrading and message or ready.message)
end
return say(ready.reason == "InitializingTimeout" and "Degraded" or "Progressing", ready.message)

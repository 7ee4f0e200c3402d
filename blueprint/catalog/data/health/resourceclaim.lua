-- kinds: resource.k8s.io/ResourceClaim
-- source: kubernetes v1.35.4 staging/src/k8s.io/api/resource/v1/types.go ResourceClaimStatus
-- A claim is allocated when a pod that uses it is scheduled: waiting for that before the pod is written would never end.
for _, device in ipairs(status.devices or {}) do
  local ready = condition("Ready", device.conditions)
  if ready ~= nil and ready.status == "False" then
    return say("Degraded", ready.message)
  end
end
if status.allocation == nil then
  return say("Healthy", "no pod uses it yet")
end
return say("Healthy", "allocated")

-- kinds: ray.io/RayCluster
-- source: kuberay v1.5.0 ray-operator/apis/ray/v1/raycluster_types.go RayClusterStatus
if stale(status.observedGeneration) then
  return say("Progressing", "its controller has not seen this generation yet")
end
local failing, why = holds("ReplicaFailure")
if failing or status.state == "failed" then
  return say("Degraded", why or status.reason)
end
if status.state == "suspended" or holds("RayClusterSuspended") then
  return say("Suspended", "suspended")
end
local head = condition("HeadPodReady")
if head ~= nil and head.status ~= "True" then
  return say("Progressing", head.message)
end
if holds("RayClusterProvisioned") or status.state == "ready" then
  return say("Healthy", "")
end
return say("Progressing", "pods are being made")

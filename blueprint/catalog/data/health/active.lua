-- kinds: kueue.x-k8s.io/ClusterQueue kueue.x-k8s.io/LocalQueue
-- source: kueue v0.17.0 apis/kueue/v1beta2 (condition Active), pkg/controller/core/{clusterqueue,localqueue}_controller.go
local active = condition("Active")
if active == nil then
  return say("Progressing", "Kueue has not judged it yet")
end
if active.status == "True" then
  return say("Healthy", active.message)
end
-- Stopped by its own spec: the wish is fulfilled, and a stopped queue must not hold up everything else.
if active.reason == "Stopped" and spec.stopPolicy ~= nil and spec.stopPolicy ~= "None" then
  return say("Healthy", "stopped by its stopPolicy: it admits nothing")
end
if active.reason == "Terminating" then
  return say("Progressing", active.message)
end
return say("Degraded", active.message)

-- kinds: nvidia.com/ClusterPolicy
-- source: github.com/NVIDIA/gpu-operator d73a0086a6ba api/nvidia/v1/clusterpolicy_types.go, internal/conditions
if status.state == "ready" then
  return say("Healthy", "")
end
local failing, message = holds("Error")
if status.state == "ignored" then
  return say("Degraded", "another ClusterPolicy is in charge")
end
if failing then
  return say("Progressing", message)
end
return say("Progressing", "its operands are not ready yet")

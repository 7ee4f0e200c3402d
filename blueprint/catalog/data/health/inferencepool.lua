-- kinds: inference.networking.k8s.io/InferencePool
-- source: gateway-api-inference-extension v1.6.0 api/v1/inferencepool_types.go ParentStatus
-- A pool that no route points at yet has no parents: the route may come in a later wave.
for _, parent in ipairs(status.parents or {}) do
  for _, name in ipairs({ "Accepted", "ResolvedRefs" }) do
    local c = condition(name, parent.conditions)
    if c == nil and #(parent.conditions or {}) > 0 and name == "Accepted" then
      return say("Progressing", "a gateway has not seen this generation yet")
    end
    if c ~= nil and c.status == "False" then
      return say("Degraded", c.message)
    end
  end
end
if #(status.parents or {}) == 0 then
  return say("Healthy", "no gateway uses it yet")
end
return say("Healthy", "")

-- kinds: externaldata.gatekeeper.sh/Provider
-- source: gatekeeper v3.23.1 apis/status/v1beta1/providerpodstatus_types.go
if #(status.byPod or {}) == 0 then
  return say("Progressing", "no Gatekeeper pod has reported yet")
end
for _, pod in ipairs(status.byPod) do
  if stale(pod.observedGeneration) then
    return say("Progressing", "a Gatekeeper pod has not seen this generation yet")
  end
  for _, e in ipairs(pod.errors or {}) do
    return say(e.retryable and "Progressing" or "Degraded", e.message)
  end
  if pod.active ~= true then
    return say("Progressing", "a Gatekeeper pod does not use it yet")
  end
end
return say("Healthy", "")

-- kinds: config.gatekeeper.sh/Config
-- source: gatekeeper v3.23.1 apis/config/v1alpha1 ConfigStatus, apis/status/v1beta1/configpodstatus_types.go
if #(status.byPod or {}) == 0 then
  return say("Progressing", "no Gatekeeper pod has reported yet")
end
for _, pod in ipairs(status.byPod) do
  if stale(pod.observedGeneration) then
    return say("Progressing", "a Gatekeeper pod has not seen this generation yet")
  end
  for _, e in ipairs(pod.errors or {}) do
    return say("Degraded", e.message)
  end
end
return say("Healthy", "")

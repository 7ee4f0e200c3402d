-- kinds: templates.gatekeeper.sh/ConstraintTemplate
-- source: frameworks/constraint pkg/apis/templates ConstraintTemplateStatus; gatekeeper v3.23.1 apis/status/v1beta1
for _, pod in ipairs(status.byPod or {}) do
  for _, e in ipairs(pod.errors or {}) do
    if not stale(pod.observedGeneration) then
      return say("Degraded", e.message)
    end
  end
end
for _, pod in ipairs(status.byPod or {}) do
  if stale(pod.observedGeneration) then
    return say("Progressing", "a Gatekeeper pod has not seen this generation yet")
  end
end
if status.created == true then
  return say("Healthy", "")
end
return say("Progressing", "the constraint kind is not there yet")

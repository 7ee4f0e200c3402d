-- kinds: admissionregistration.k8s.io/ValidatingAdmissionPolicy
-- source: kubernetes v1.35.4 pkg/controller/validatingadmissionpolicystatus/controller.go
-- Type warnings are shown and do not degrade: a policy for several kinds has them by right.
if status.observedGeneration == nil or stale(status.observedGeneration) then
  return say("Progressing", "its expressions are not type-checked yet")
end
local warnings = (status.typeChecking or {}).expressionWarnings or {}
if #warnings > 0 then
  return say("Healthy", #warnings .. " type warnings, the first: " .. (warnings[1].warning or ""))
end
return say("Healthy", "")

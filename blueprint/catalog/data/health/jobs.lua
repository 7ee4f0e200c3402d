-- kinds: trainer.kubeflow.org/TrainJob jobset.x-k8s.io/JobSet
-- source: trainer v2.2.0 pkg/apis/trainer/v1alpha1/trainjob_types.go (Complete), jobset v0.11.1 api/jobset/v1alpha2 (Completed)
-- As with a batch/Job: Healthy means done, running is Progressing.
for _, name in ipairs({ "Failed", "Complete", "Completed", "Suspended" }) do
  local yes, message = holds(name)
  if yes then
    local verdict = { Failed = "Degraded", Suspended = "Suspended" }
    return say(verdict[name] or "Healthy", message or name)
  end
end
if spec.suspend == true then
  return say("Suspended", "suspended by its spec")
end
return say("Progressing", "running, or not started yet")

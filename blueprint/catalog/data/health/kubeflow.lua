-- kinds: kubeflow.org/PyTorchJob kubeflow.org/TFJob kubeflow.org/MPIJob kubeflow.org/JAXJob kubeflow.org/XGBoostJob kubeflow.org/PaddleJob
-- source: training-operator v1.9.3 pkg/apis/kubeflow.org/v1/common_types.go JobStatus (no observed generation in it)
-- As with a batch/Job: Healthy means done, running is Progressing.
for _, name in ipairs({ "Failed", "Succeeded", "Suspended", "Restarting", "Running", "Created" }) do
  local yes, message = holds(name)
  if yes then
    local verdict = { Failed = "Degraded", Succeeded = "Healthy", Suspended = "Suspended" }
    return say(verdict[name] or "Progressing", message or name)
  end
end
if (spec.runPolicy or {}).suspend == true then
  return say("Suspended", "suspended by its spec")
end
return say("Progressing", "not started yet")

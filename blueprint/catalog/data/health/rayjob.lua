-- kinds: ray.io/RayJob
-- source: kuberay v1.5.0 ray-operator/apis/ray/v1/rayjob_types.go JobDeploymentStatus, JobStatus
local phase, verdict = status.jobDeploymentStatus, {
  Failed = "Degraded",
  ValidationFailed = "Degraded",
  Suspended = "Suspended",
}
local message = status.message or status.reason or phase or "not started yet"
if phase == "Complete" then
  return say(status.jobStatus == "SUCCEEDED" and "Healthy" or "Degraded", message)
end
return say(verdict[phase or ""] or "Progressing", message)

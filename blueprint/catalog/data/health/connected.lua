-- kinds: kueue.x-k8s.io/AdmissionCheck kueue.x-k8s.io/MultiKueueCluster
-- source: kueue v0.17.0 apis/kueue/v1beta2 (condition Active), pkg/controller/admissionchecks
-- The generation in the condition is not looked at: Kueue leaves it as it is where status, reason and message stay the same.
for _, c in ipairs(status.conditions or {}) do
  if c.type == "Active" then
    return say(c.status == "True" and "Healthy" or "Degraded", c.message)
  end
end
return say("Progressing", "its controller has not judged it yet")

-- kinds: monitoring.coreos.com/ServiceMonitor monitoring.coreos.com/PodMonitor monitoring.coreos.com/Probe monitoring.coreos.com/ScrapeConfig monitoring.coreos.com/PrometheusRule
-- source: prometheus-operator v0.93.1 example/prometheus-operator-crd (status.bindings[].conditions, type Accepted)
-- The operator writes bindings only with the feature gate StatusForConfigurationResources: none is no bad sign.
for _, binding in ipairs(status.bindings or {}) do
  local accepted = condition("Accepted", binding.conditions)
  if accepted ~= nil and accepted.status == "False" then
    return say("Degraded", accepted.message)
  end
end
return say("Healthy", "")

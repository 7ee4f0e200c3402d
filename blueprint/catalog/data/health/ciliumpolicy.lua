-- kinds: cilium.io/CiliumNetworkPolicy cilium.io/CiliumClusterwideNetworkPolicy
-- source: cilium v1.20.2 pkg/k8s/apis/cilium.io/v2/cnp_types.go (condition Valid, set by the operator)
local valid = condition("Valid")
if valid == nil then
  return say("Progressing", "not validated yet")
end
return say(valid.status == "True" and "Healthy" or "Degraded", valid.message)

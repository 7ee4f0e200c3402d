-- kinds: velero.io/BackupStorageLocation
-- source: velero v1.18.3 pkg/apis/velero/v1/backupstoragelocation_types.go
if status.phase == "Available" then
  return say("Healthy", "")
end
if status.phase == "Unavailable" then
  return say("Degraded", status.message)
end
return say("Progressing", "not validated yet")

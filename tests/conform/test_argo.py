"""What is read off an Application's status."""

from blueprint.conform.argo import healthy, said, synced


def application(sync="Synced", health="Healthy", phase="Succeeded", **other):
    operation = {"phase": phase, "message": "done"}
    return {"status": {"sync": {"status": sync}, "health": {"status": health}, "operationState": operation}, **other}


def test_synced_means_that_nothing_runs():
    assert synced(application())
    assert synced({"status": {"sync": {"status": "Synced"}}}), "nothing was ever to do"
    assert not synced(application(sync="OutOfSync"))
    assert not synced(application(phase="Running"))
    assert not synced(application(operation={"sync": {}})), "a sync is due"
    assert not synced({})


def test_healthy_means_synced_and_healthy():
    assert healthy(application())
    assert not healthy(application(health="Progressing"))
    assert not healthy(application(sync="OutOfSync"))


def test_what_an_application_says_names_what_failed():
    body = application(phase="Failed")
    body["status"]["conditions"] = [{"type": "ComparisonError", "message": "no manifests"}]
    row = {"kind": "Deployment", "name": "web", "status": "SyncFailed", "message": "unknown field"}
    body["status"]["operationState"]["syncResult"] = {"resources": [row, {**row, "name": "fine", "status": "Synced"}]}
    words = said(body)
    assert "operation Failed: done" in words
    assert "ComparisonError: no manifests" in words
    assert "Deployment/web: unknown field" in words
    assert "fine" not in words
    assert said({}) == "not compared; no health; operation none: "

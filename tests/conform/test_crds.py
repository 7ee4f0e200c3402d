from blueprint.conform.crds import without_descriptions


def test_descriptions_go_and_properties_of_that_name_stay():
    schema = {
        "description": "gone",
        "properties": {
            "description": {"type": "string", "description": "gone"},
            "list": {"items": {"type": "string", "description": "gone"}},
            "map": {"additionalProperties": {"anyOf": [{"type": "string", "description": "gone"}]}},
        },
        "default": {"description": "kept"},
    }
    crd = {"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}, {"name": "v0"}]}}
    stripped = without_descriptions(crd)
    assert stripped["spec"]["versions"][0]["schema"]["openAPIV3Schema"] == {
        "properties": {
            "description": {"type": "string"},
            "list": {"items": {"type": "string"}},
            "map": {"additionalProperties": {"anyOf": [{"type": "string"}]}},
        },
        "default": {"description": "kept"},
    }
    assert schema["description"] == "gone", "the given one is not changed"

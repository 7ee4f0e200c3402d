"""CEL of policies: types, names and functions, and silence where only Kubernetes can tell."""

from __future__ import annotations

import pytest

from blueprint.cel import Scope

SCOPE = Scope({"allowed": "bool", "count": "int", "names": "list", "anyObject": "dyn"})

#: Conditions that Kubernetes refuses, and what is said of them. The API server itself judges them, too:
#: tests/conformance/test_policy_expressions.py.
REFUSED = {
    "object.spec ==": "syntax error",
    "object.metadata.name.startWith('a')": "there is no function startWith; did you mean startsWith?",
    "object.spec.list.exist(c, c == 1)": "there is no function exist; did you mean exists?",
    "'A'.lowerASCII() == 'a'": "there is no function lowerASCII; did you mean lowerAscii?",
    "cel.bind(name, object.metadata.name, name == 'a')": "there is no function bind",
    "obj.spec.x == 1": "there is no variable obj; did you mean object?",
    "params.limit == 1": "there is no variable params",
    "variables.alowed": "there is no variables.alowed before this",
    "variables.count": "a rule is true or false, and this gives int",
    "size(object.spec.containers)": "a rule is true or false, and this gives int",
    "object.spec.containers.map(c, c.image)": "a rule is true or false, and this gives list",
    "object.metadata.name == 'a' ? 1 : 2": "a rule is true or false, and this gives int",
    "string(object.spec.x)": "a rule is true or false, and this gives string",
    "variables.allowed && variables.count": "&& does not take bool and int",
    "1 + 'a' == 2": "+ does not take int and string",
    "variables.count == 'one'": "== does not take int and string",
    "object.metadata.name.contains(1)": "contains does not take dyn and int",
    "object.spec.hostNetwork": "of a field nobody knows that it is true or false",
    "object.metadata.labels['a.b/c']": "of a field nobody knows that it is true or false",
    " ": "the expression is empty",
}
#: Conditions that Kubernetes takes.
TAKEN = [
    "true",
    "!object.spec.hostNetwork",
    "object.spec.hostNetwork == true",
    "object.metadata.name == 'variables.nothing' || object.metadata.name == \"obj.spec\"",
    "variables.allowed",
    "has(object.spec.x) && variables.allowed",
    "variables.count > 1.5",
    "variables.names.all(name, name.startsWith('a'))",
    "object.spec.list.all(i, v, v > i)",
    "object.spec.list.sortBy(e, e.n).size() > 0",
    "object.spec.list.indexOf('a') == 1 && [1, 2].slice(0, 1) == [1]",
    "quantity(object.spec.a).isGreaterThan(quantity('1Gi'))",
    "semver('1.2.3').isGreaterThan(semver('1.0.0'))",
    "!format.dns1123Label().validate('a').hasValue()",
    "object.?spec.?x.orValue('a') == 'a'",
    "authorizer.group('').resource('pods').check('create').allowed()",
    "request.userInfo.username.startsWith('system:')",
    "namespaceObject.metadata.name == 'a'",
    "sets.contains(['a'], ['a']) && ip('10.0.0.1').family() == 4 && url('https://a').getHost() == 'a'",
    "'%s'.format([object.metadata.name]) == 'a'",
]


@pytest.mark.parametrize(("text", "says"), REFUSED.items())
def test_what_kubernetes_refuses_is_told(text: str, says: str) -> None:
    assert says in SCOPE.judge(text, condition=True).problem


@pytest.mark.parametrize("text", TAKEN)
def test_what_kubernetes_takes_is_silent(text: str) -> None:
    assert SCOPE.judge(text, condition=True).problem == ""


def test_a_variable_may_be_of_any_type() -> None:
    assert SCOPE.judge("object.spec.containers.map(c, c.image)").problem == ""
    assert SCOPE.judge("object.spec.replicas").type == "dyn"
    assert SCOPE.judge("size(object.spec.containers)").type == "int"


@pytest.mark.parametrize("text", ["resource.Get('v1', 'pods', 'a', 'b').x == 1", "images.containers.size() > 0"])
def test_functions_and_names_of_another_engine_are_left_to_it(text: str) -> None:
    assert SCOPE.judge(text, condition=True).problem
    assert Scope({}, open=True).judge(text, condition=True).problem == ""
    assert Scope({}, open=True).judge("variables.nothing == 1").problem
    assert Scope({}, open=True).judge("size(object.x)", condition=True).problem


def test_of_many_lines_the_line_is_named() -> None:
    answer = SCOPE.judge("object.spec.a == 1\n  && object.spec..b")
    assert answer.problem.startswith("line 2, column 18: syntax error")

"""The command line of a vLLM server against what its version takes.

Sources: vllm 0.33.0 utils/argparse_utils.py, entrypoints/cli/serve.py, config/lora.py, config/parallel.py. The table of
flags (blueprint/catalog/data/vllm_flags.yaml) was read from the sources of each version.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from blueprint.catalog import slips
from blueprint.catalog.facts import Flag, FlagAnswer, Presence, flag, option_name
from blueprint.catalog.tables import table
from blueprint.catalog.vllm import known_flag, newest
from blueprint.check.engines import Argument, Engine, engines, name_and_tag
from blueprint.check.graph import Graph
from blueprint.check.rules.say import note, say, warn
from blueprint.finding import Confidence, Finding, Severity

_MOVING = ("latest", "nightly", "main", "stable", "dev")
_SIZE = re.compile(r"(?:-1|\d+|\d+(?:\.\d+)?[kKmMgGtT])")
_NUMBERS = {
    "int": re.compile(r"[-+]?[\d_]+"),
    "float": re.compile(r"[-+]?(?:[\d_]+\.?[\d_]*|\.[\d_]+)(?:[eE][-+]?\d+)?|[-+]?(?:inf|nan)", re.IGNORECASE),
}


def unknown_versions(graph: Graph) -> Iterator[Finding]:
    """SRV201: an image whose tag moves: nobody can say which flags and metrics its server has."""
    for engine in engines(graph):
        tag = name_and_tag(engine.image)[1]
        if not engine.version and "@" not in engine.image and (not tag or tag.startswith(_MOVING)):
            message = f"{engine.image} may be any version of vLLM: its flags and metrics cannot be checked"
            yield note(
                "SRV201", engine.manifest, message, f"{engine.at}.image", "use a tag with a version, and a digest"
            )


def unknown_flags(graph: Graph) -> Iterator[Finding]:
    """SRV202: an option that the argument parser of this version does not know."""
    for engine in engines(graph):
        for argument in engine.arguments:
            if not argument.option.startswith("--"):
                continue
            answer = flag(argument.option, engine.version or newest())
            if answer.presence is not Presence.ABSENT:
                continue
            path, fix = f"{engine.at}.{argument.at}", _instead(answer)
            name = option_name(argument.option)
            if engine.version:
                message = f"vLLM {engine.version} does not know {name}{_history(answer)}; it exits at once"
                yield say("SRV202", engine.manifest, message, path, fix)
            elif engine.image.endswith(":latest") or known_flag(argument.option) is None:
                message = f"{name} is no option of vLLM {newest()}{_history(answer)}"
                yield say("SRV202", engine.manifest, message, path, fix, Severity.WARNING, Confidence.LIKELY)


def _history(answer: FlagAnswer) -> str:
    if answer.removed:
        return f" (gone by {answer.removed})"
    return f" (it comes with {answer.added})" if answer.added else ""


def _instead(answer: FlagAnswer) -> str:
    if answer.instead:
        return f"instead: {answer.instead}"
    return "leave it out" if answer.instead == "" else "compare with `vllm serve --help` of this version"


def refused_values(graph: Graph) -> Iterator[Finding]:
    """SRV203: a value that the argument parser of this version refuses."""
    for engine in engines(graph):
        for argument in engine.arguments:
            answer = flag(argument.option, engine.version) if engine.version else None
            if answer is None or answer.flag is None or not answer.exact:
                continue
            if problem := _refusal(argument, answer.flag):
                message = f"vLLM {engine.version} refuses {argument.option}: {problem}"
                fix = _choices(answer.flag)
                yield say("SRV203", engine.manifest, message, f"{engine.at}.{argument.at}", fix)
            elif unlikely := _unlikely(argument, answer.flag):
                path, sure = f"{engine.at}.{argument.at}", Confidence.LIKELY
                yield say("SRV203", engine.manifest, unlikely[0], path, unlikely[1], Severity.WARNING, sure)


def _refusal(argument: Argument, of: Flag) -> str:
    value = argument.known
    if of.takes in {"switch", "boolean"}:
        return f"it takes no value, and {value!r} is given" if value else ""
    if argument.value is None:
        return "it needs a value" if of.takes in {"value", "values"} and of.type != "json" else ""
    if not value or of.takes in {"values", "repeated"} or "." in argument.option.removeprefix("--"):
        return ""
    if not of.accepts(value):
        return f"{value!r} is none of its choices"
    shape = _NUMBERS.get(of.type)
    if shape and not shape.fullmatch(value) and not (of.default is None and value in {"None", ""}):
        return f"{value!r} is no {'whole number' if of.type == 'int' else 'number'}"
    if of.type == "json" and value.startswith(("{", "[")) and not _is_json(value):
        return "the value is no JSON"
    return ""


def _unlikely(argument: Argument, of: Flag) -> tuple[str, str] | None:
    """What is wrong with a value that the parser takes, and what was meant; None where it may be right.

    Plugins bring methods of quantization with names of their own: only what is nearly a known one is told.
    """
    value = argument.known
    if " --" in value and of.type == "str":
        return f"the value of {argument.option} is {value!r}, with further options in it", "an argument for each option"
    if of.name != "--quantization":
        return None
    known = table("vllm_values")
    near = slips.meant(value, frozenset(known["quantization"])) or known["quantization_otherwise"].get(value.lower())
    return (f"no method of quantization is called {value}", f"did you mean {near}?") if near else None


def _choices(of: Flag) -> str:
    if of.takes in {"switch", "boolean"}:
        negative = f", or {of.name.replace('--', '--no-', 1)} to turn it off" if of.takes == "boolean" else ""
        return f"write {of.name} alone{negative}"
    return f"one of {', '.join(str(choice) for choice in of.choices)}" if of.choices else "give a value of its type"


def _is_json(value: str) -> bool:
    try:
        json.loads(value)
    except ValueError:
        return False
    return True


def deprecated_flags(graph: Graph) -> Iterator[Finding]:
    """SRV204: an option that this version still takes and the newest one read does not."""
    for engine in engines(graph):
        for argument in engine.arguments:
            if not (engine.version and argument.option.startswith("--")):
                continue
            now, later = flag(argument.option, engine.version), flag(argument.option, newest())
            if now.presence is Presence.PRESENT and (
                later.presence is Presence.ABSENT or (now.flag and now.flag.deprecated)
            ):
                gone = f"and gone by {later.removed}" if later.removed else "and will go"
                message = f"{option_name(argument.option)} is on its way out {gone}"
                yield note("SRV204", engine.manifest, message, f"{engine.at}.{argument.at}", _instead(later))


def stray_values(graph: Graph) -> Iterator[Finding]:
    """SRV205: a word that belongs to no option, as `true` after a switch: it is taken for the model, or refused."""
    for engine in engines(graph):
        words = engine.loose
        for word in words:
            if word.text in {"true", "false", "True", "False"}:
                message = (
                    f"{word.text!r} belongs to no option: a switch takes no value, so it is read as the model's name"
                )
                fix = "write the switch alone; --no-… turns a boolean off"
                yield say("SRV205", engine.manifest, message, f"{engine.at}.{word.at}", fix)
        models = [word for word in words if word.known and word.text not in {"true", "false", "True", "False"}]
        if len(models) > 1:
            message = f"{models[1].text!r} belongs to no option; vLLM exits with unrecognized arguments"
            yield say("SRV205", engine.manifest, message, f"{engine.at}.{models[1].at}", "put it behind its option")


def conflicting_flags(graph: Graph) -> Iterator[Finding]:
    """SRV206: options that exclude or need one another."""
    for engine in engines(graph):
        for argument, problem, fix in _conflicts(engine):
            path = f"{engine.at}.{argument.at}"
            yield say("SRV206", engine.manifest, f"vLLM refuses {argument.option}: {problem}", path, fix)


def _conflicts(engine: Engine) -> Iterator[tuple[Argument, str, str]]:
    data, tensor = engine.size("--data-parallel-size"), engine.tensor
    if (argument := engine.option("--data-parallel-external-lb")) and data == 1:
        yield argument, "it needs --data-parallel-size above 1", "give the size, or leave it out"
    local = engine.option("--data-parallel-size-local")
    if local and data is not None and local.known.isdigit() and int(local.known) > data:
        yield local, f"{local.known} is more than --data-parallel-size {data}", f"at most {data}"
    context = engine.option("--decode-context-parallel-size")
    if context and tensor and context.known.isdigit() and int(context.known) and tensor % int(context.known):
        yield context, f"{context.known} does not divide --tensor-parallel-size {tensor}", "use a divisor"
    if engine.headless:
        servers = engine.option("--api-server-count")
        if servers and servers.known.isdigit() and int(servers.known) > 0:
            yield servers, "a --headless server has no API servers", "leave it out"
        if argument := engine.option("--data-parallel-hybrid-lb"):
            yield argument, "it does not go with --headless", "leave it out"
    chosen = engine.option("--enable-auto-tool-choice")
    if chosen and engine.switched_on(chosen.option) and not engine.option("--tool-call-parser") and not engine.open:
        yield chosen, "it needs --tool-call-parser", "name the parser of the model, such as hermes"
    loras, cached = engine.size("--max-loras"), engine.option("--max-cpu-loras")
    if cached and loras and cached.known.isdigit() and int(cached.known) < loras:
        yield cached, f"{cached.known} is less than --max-loras {loras}", f"at least {loras}"
    if (
        (argument := engine.option("--collect-detailed-traces"))
        and not engine.option("--otlp-traces-endpoint")
        and not engine.open
    ):
        yield argument, "it needs --otlp-traces-endpoint", "say where traces go"
    for name, least, most in _SHARES:
        share = engine.option(name)
        if share and share.known and _NUMBERS["float"].fullmatch(share.known):
            value = float(share.known)
            if not least < value <= most:
                yield (
                    share,
                    f"{share.known} is not above {least:g} and at most {most:g}",
                    f"a share such as {most * 0.9:g}",
                )


_SHARES = (("--gpu-memory-utilization", 0.0, 1.0),)
"""Options that are shares, with what they must be above and may be at most (vllm config/cache.py)."""


def adapters_without_lora(graph: Graph) -> Iterator[Finding]:
    """SRV207: adapters are named while LoRA is off; loading them fails, and the server with them."""
    for engine in engines(graph):
        modules = engine.option("--lora-modules")
        if modules and not engine.switched_on("--enable-lora") and not engine.open:
            message = "--lora-modules names adapters and --enable-lora is not there"
            yield say("SRV207", engine.manifest, message, f"{engine.at}.{modules.at}", "add --enable-lora")


def loose_doors(graph: Graph) -> Iterator[Finding]:
    """SRV208: what lets a caller change the server, runs code of the model's repository, or shows its key in Git."""
    for engine in engines(graph):
        runtime = engine.variables.get("VLLM_ALLOW_RUNTIME_LORA_UPDATING")
        if runtime and runtime.lower() in {"1", "true"}:
            message = "VLLM_ALLOW_RUNTIME_LORA_UPDATING lets every caller load adapters from any path"
            yield warn("SRV208", engine.manifest, message, f"{engine.at}.env", "name adapters with --lora-modules")
        if engine.switched_on("--trust-remote-code"):
            argument = engine.option("--trust-remote-code")
            message = "--trust-remote-code runs Python from the model's repository in the pod"
            fix = "leave it out, or pin --revision and --code-revision to commits that were read"
            if argument and not (engine.option("--revision") or engine.option("--code-revision")):
                yield warn("SRV208", engine.manifest, message, f"{engine.at}.{argument.at}", fix)
        key = engine.option("--api-key")
        if key and key.known:
            message = "--api-key holds the key in plain text, and so does Git"
            fix = "leave it out and set VLLM_API_KEY from a Secret"
            yield warn("SRV208", engine.manifest, message, f"{engine.at}.{key.at}", fix)


def metrics_off(graph: Graph) -> Iterator[Finding]:
    """SRV209: --disable-log-stats takes every vllm: metric away, while something in the tree reads them."""
    for engine in engines(graph):
        argument = engine.option("--disable-log-stats")
        if argument and engine.switched_on("--disable-log-stats") and _reads_metrics(graph):
            message = "--disable-log-stats turns the metrics of vLLM off; scalers, alerts and analyses go blind"
            yield say("SRV209", engine.manifest, message, f"{engine.at}.{argument.at}", "leave it out")


def _reads_metrics(graph: Graph) -> bool:
    kinds = (
        "PrometheusRule.monitoring.coreos.com",
        "AnalysisTemplate.argoproj.io",
        "ClusterAnalysisTemplate.argoproj.io",
        "ScaledObject.keda.sh",
        "PodMonitor.monitoring.coreos.com",
        "ServiceMonitor.monitoring.coreos.com",
    )
    return any("vllm" in str(manifest.body.get("spec")) for manifest in graph.kind(*kinds))


RULES = (
    unknown_versions,
    unknown_flags,
    refused_values,
    deprecated_flags,
    stray_values,
    conflicting_flags,
    adapters_without_lora,
    loose_doors,
    metrics_off,
)
TREE = ()

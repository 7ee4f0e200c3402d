"""Which models the table holds: the place of each shape, and the repository names that have exactly this shape.

The number after a name is its own max_position_embeddings where that differs from the one of the shape.
"""

from __future__ import annotations

from typing import Any

Ids = dict[str, int | None]


def _ids(*names: str, context: int | None = None) -> Ids:
    return dict.fromkeys(names, context)


HF: dict[str, Ids] = {
    "meta-llama/Meta-Llama-3.1-8B": _ids(
        "meta-llama/Llama-3.1-8B",
        "meta-llama/Llama-3.1-8B-Instruct",
        "meta-llama/Meta-Llama-3.1-8B",
        "meta-llama/Meta-Llama-3.1-8B-Instruct",
        "deepseek-ai/DeepSeek-R1-Distill-Llama-8B",
    ),
    "meta-llama/Meta-Llama-3.1-70B": _ids(
        "meta-llama/Llama-3.1-70B",
        "meta-llama/Llama-3.1-70B-Instruct",
        "meta-llama/Meta-Llama-3.1-70B",
        "meta-llama/Meta-Llama-3.1-70B-Instruct",
        "meta-llama/Llama-3.3-70B-Instruct",
        "deepseek-ai/DeepSeek-R1-Distill-Llama-70B",
    ),
    "meta-llama/Meta-Llama-3.1-405B": _ids(
        "meta-llama/Llama-3.1-405B", "meta-llama/Llama-3.1-405B-Instruct", "meta-llama/Meta-Llama-3.1-405B"
    ),
    "meta-llama/Llama-4-Scout-17B-16E-Instruct": _ids("meta-llama/Llama-4-Scout-17B-16E-Instruct"),
    "meta-llama/Llama-4-Maverick-17B-128E-Instruct": _ids("meta-llama/Llama-4-Maverick-17B-128E-Instruct"),
    "Qwen/Qwen3-0.6B": _ids("Qwen/Qwen3-0.6B"),
    "Qwen/Qwen3-1.7B": _ids("Qwen/Qwen3-1.7B"),
    "Qwen/Qwen3-8B": _ids("Qwen/Qwen3-8B"),
    "Qwen/Qwen3-32B": _ids("Qwen/Qwen3-32B"),
    "Qwen/Qwen3-32B-FP8": _ids("Qwen/Qwen3-32B-FP8"),
    "Qwen/Qwen3-30B-A3B": _ids("Qwen/Qwen3-30B-A3B"),
    "Qwen/Qwen3-30B-A3B-FP8": _ids("Qwen/Qwen3-30B-A3B-FP8"),
    "Qwen/Qwen3-235B-A22B": _ids("Qwen/Qwen3-235B-A22B"),
    "Qwen/Qwen3-235B-A22B-FP8": _ids("Qwen/Qwen3-235B-A22B-FP8"),
    "Qwen/Qwen3-Coder-480B-A35B-Instruct": _ids("Qwen/Qwen3-Coder-480B-A35B-Instruct"),
    "Qwen/Qwen3.5-27B": _ids("Qwen/Qwen3.5-27B"),
    "Qwen/Qwen3.5-35B-A3B": _ids("Qwen/Qwen3.5-35B-A3B"),
    "Qwen/Qwen3.5-122B-A10B": _ids("Qwen/Qwen3.5-122B-A10B"),
    "Qwen/Qwen3.5-397B-A17B": _ids("Qwen/Qwen3.5-397B-A17B"),
    "mistralai/Mixtral-8x7B-v0.1": _ids("mistralai/Mixtral-8x7B-v0.1", "mistralai/Mixtral-8x7B-Instruct-v0.1"),
    "mistralai/Mixtral-8x22B-v0.1": _ids("mistralai/Mixtral-8x22B-v0.1"),
    "deepseek-ai/DeepSeek-V3": _ids("deepseek-ai/DeepSeek-V3", "deepseek-ai/DeepSeek-V3-0324"),
    "deepseek-ai/DeepSeek-R1": _ids("deepseek-ai/DeepSeek-R1", "deepseek-ai/DeepSeek-R1-0528"),
    "moonshotai/Kimi-K2-Instruct": _ids("moonshotai/Kimi-K2-Instruct"),
    "MiniMaxAI/MiniMax-M2.5": _ids("MiniMaxAI/MiniMax-M2.5"),
    "zai-org/GLM-5": _ids("zai-org/GLM-5"),
    "zai-org/GLM-5-FP8": _ids("zai-org/GLM-5-FP8"),
    "openai/gpt-oss-20b": _ids("openai/gpt-oss-20b"),
    "openai/gpt-oss-120b": _ids("openai/gpt-oss-120b"),
}
"""Shapes from a published config.json: the repository that it is of → the names."""

LITGPT: dict[str, tuple[str, bool, Ids]] = {
    "Llama-3.2-1B": (
        "LlamaForCausalLM",
        True,
        _ids("meta-llama/Llama-3.2-1B", "meta-llama/Llama-3.2-1B-Instruct"),
    ),
    "Llama-3.2-3B": (
        "LlamaForCausalLM",
        True,
        _ids("meta-llama/Llama-3.2-3B", "meta-llama/Llama-3.2-3B-Instruct"),
    ),
    "Qwen2.5-0.5B": (
        "Qwen2ForCausalLM",
        True,
        _ids("Qwen/Qwen2.5-0.5B", "Qwen/Qwen2.5-0.5B-Instruct", context=32768),
    ),
    "Qwen2.5-1.5B": (
        "Qwen2ForCausalLM",
        True,
        _ids("Qwen/Qwen2.5-1.5B") | _ids("Qwen/Qwen2.5-1.5B-Instruct", context=32768),
    ),
    "Qwen2.5-3B": (
        "Qwen2ForCausalLM",
        True,
        _ids("Qwen/Qwen2.5-3B", "Qwen/Qwen2.5-3B-Instruct", context=32768),
    ),
    "Qwen2.5-7B": (
        "Qwen2ForCausalLM",
        False,
        _ids("Qwen/Qwen2.5-7B") | _ids("Qwen/Qwen2.5-7B-Instruct", "Qwen/Qwen2.5-Coder-7B-Instruct", context=32768),
    ),
    "Qwen2.5-14B": (
        "Qwen2ForCausalLM",
        False,
        _ids("Qwen/Qwen2.5-14B") | _ids("Qwen/Qwen2.5-14B-Instruct", context=32768),
    ),
    "Qwen2.5-32B": (
        "Qwen2ForCausalLM",
        False,
        _ids("Qwen/Qwen2.5-32B") | _ids("Qwen/Qwen2.5-32B-Instruct", "Qwen/Qwen2.5-Coder-32B-Instruct", context=32768),
    ),
    "Qwen2.5-72B": (
        "Qwen2ForCausalLM",
        False,
        _ids("Qwen/Qwen2.5-72B") | _ids("Qwen/Qwen2.5-72B-Instruct", context=32768),
    ),
    "Qwen3-4B": ("Qwen3ForCausalLM", True, _ids("Qwen/Qwen3-4B") | _ids("Qwen/Qwen3-4B-Instruct-2507", context=262144)),
    "Qwen3-14B": ("Qwen3ForCausalLM", False, _ids("Qwen/Qwen3-14B")),
    "Qwen3-30B-A3B-Instruct-2507": ("Qwen3MoeForCausalLM", False, _ids("Qwen/Qwen3-30B-A3B-Instruct-2507")),
    "Mistral-7B-v0.2": ("MistralForCausalLM", False, _ids("mistralai/Mistral-7B-Instruct-v0.2")),
    "Mistral-7B-v0.3": (
        "MistralForCausalLM",
        False,
        _ids("mistralai/Mistral-7B-v0.3", "mistralai/Mistral-7B-Instruct-v0.3"),
    ),
    "Gemma-2-2b": ("Gemma2ForCausalLM", True, _ids("google/gemma-2-2b", "google/gemma-2-2b-it")),
    "Gemma-2-9b": ("Gemma2ForCausalLM", True, _ids("google/gemma-2-9b", "google/gemma-2-9b-it")),
    "Gemma-2-27b": ("Gemma2ForCausalLM", True, _ids("google/gemma-2-27b", "google/gemma-2-27b-it")),
    "Gemma-3-1b-it": ("Gemma3ForCausalLM", True, _ids("google/gemma-3-1b-it", context=32768)),
    "Gemma-3-4b-it": ("Gemma3ForConditionalGeneration", True, _ids("google/gemma-3-4b-it")),
    "Gemma-3-12b-it": ("Gemma3ForConditionalGeneration", True, _ids("google/gemma-3-12b-it")),
    "Gemma-3-27b-it": ("Gemma3ForConditionalGeneration", True, _ids("google/gemma-3-27b-it")),
    "Phi-3-mini-128k-instruct": ("Phi3ForCausalLM", False, _ids("microsoft/Phi-3-mini-128k-instruct")),
    "Phi-3.5-mini-instruct": ("Phi3ForCausalLM", False, _ids("microsoft/Phi-3.5-mini-instruct", context=131072)),
    "phi-4": ("Phi3ForCausalLM", False, _ids("microsoft/phi-4")),
    "Phi-4-mini-instruct": ("Phi3ForCausalLM", True, _ids("microsoft/Phi-4-mini-instruct")),
}
"""Shapes from litgpt: its name → the architecture, whether the embeddings are tied, the names."""


def _encoder(architecture: str, vocab: int, context: int, parameters: int) -> dict[str, Any]:
    shape = {"layers": 24, "hidden": 1024, "heads": 16, "kv_heads": 16, "head_dim": 64, "intermediate": 4096}
    rest = {"vocab": vocab, "context": context, "tied": True, "attention": "encoder", "dtype": "float32"}
    return {"architecture": architecture, **shape, **rest, "parameters": parameters}


ENCODERS: list[tuple[Ids, dict[str, Any], str]] = [
    (
        _ids("BAAI/bge-m3", "BAAI/bge-reranker-v2-m3"),
        _encoder("XLMRobertaModel", 250002, 8192, 567754752),
        "XLM-RoBERTa large (transformers modeling_xlm_roberta.py); 8,192 tokens by the model card",
    ),
    (
        _ids("intfloat/multilingual-e5-large"),
        _encoder("XLMRobertaModel", 250002, 512, 559890432),
        "XLM-RoBERTa large (transformers modeling_xlm_roberta.py); 512 tokens by the model card",
    ),
    (
        _ids("BAAI/bge-large-en-v1.5"),
        _encoder("BertModel", 30522, 512, 335141888),
        "BERT large uncased (transformers modeling_bert.py); 512 tokens by the model card",
    ),
]
"""Embedding models: encoders without a key-value cache. Their parameters follow from the shape."""

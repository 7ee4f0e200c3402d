"""Signatures: what was rendered is what was reviewed, by whom and when, and what a deployment was allowed on."""

"""Specs to objects: names, templates, canonical YAML, waves from needs."""

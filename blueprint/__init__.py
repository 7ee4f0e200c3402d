"""Render, check and prove AI platforms on Kubernetes."""

__version__ = "0.1.0"

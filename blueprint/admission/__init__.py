"""Kueue's decision, reproduced: may this job be admitted on an idle cluster with this inventory, where, and why not."""

"""A real control plane as ordinary processes on loopback, and what is proved on it."""

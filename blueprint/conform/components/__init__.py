"""The programs that run beside the API server, one small description each."""

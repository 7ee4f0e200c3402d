"""What a platform looks like: pictures and a handbook, for people who read neither YAML nor code."""

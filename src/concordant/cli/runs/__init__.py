"""Run directories: what `train`, `tune` and `rerun` write, and other commands read."""

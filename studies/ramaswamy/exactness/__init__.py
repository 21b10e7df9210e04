"""Exact regret for AP and PD: pair scores reach the best ranking where sorted scores do not."""

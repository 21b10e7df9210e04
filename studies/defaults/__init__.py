"""The experiments that decided the default losses of the rankers."""

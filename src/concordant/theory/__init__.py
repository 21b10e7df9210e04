"""What is proven: theorems as data, certificates, bounds, noise conditions, exact regret."""

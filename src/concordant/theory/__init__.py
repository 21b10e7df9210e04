"""Guarantees: which combinations are consistent, and how far a ranker is from the best possible."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=[
        "bounds",
        "catalogue",
        "certificate",
        "certify",
        "combination",
        "conditions",
        "kinds",
        "lowrank",
        "regret",
        "replicates",
        "search",
        "spaces",
        "theorem",
        "transfer",
    ],
)

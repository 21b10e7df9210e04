"""What is guaranteed, and how far a ranker is from the best possible."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=[
        "bounds",
        "catalogue",
        "certificate",
        "combination",
        "conditions",
        "kinds",
        "lowrank",
        "matrix",
        "minimiser",
        "regret",
        "replicates",
        "search",
        "spaces",
        "theorem",
        "transfer",
        "witness",
    ],
)

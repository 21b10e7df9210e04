"""What was measured, and how sure one can be of it: paired tests, and the experiments of papers run again."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=[
        "condition_plots",
        "consistency",
        "exactness",
        "plots",
        "populations",
        "reproduction",
        "significance",
    ],
    submod_attrs={"significance": ["Comparison", "Paired", "against_best", "holm", "paired"]},
)

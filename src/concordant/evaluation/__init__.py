"""What was measured, and how sure one can be of it: paired tests, and the experiments of papers run again."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=[
        "bootstrap",
        "comparison",
        "comparison_result",
        "comparison_words",
        "condition_plots",
        "consistency",
        "corrections",
        "effects",
        "evaluated",
        "exactness",
        "flips",
        "outcome_calibration",
        "outcome_plots",
        "outcomes",
        "paired_areas",
        "plots",
        "populations",
        "report",
        "reproduction",
        "significance",
        "splits",
    ],
    submod_attrs={
        "comparison": ["compare"],
        "comparison_result": ["ComparisonSettings", "ModelComparison", "ModelMean", "PairComparison"],
        "corrections": ["benjamini_hochberg", "bonferroni"],
        "evaluated": ["Evaluation", "evaluate"],
        "outcome_calibration": ["Calibration", "calibration_table"],
        "outcome_plots": ["plot_calibration", "plot_roc"],
        "outcomes": ["OutcomeReport", "evaluate_outcomes", "log_loss", "trivial_roc"],
        "paired_areas": ["PairedAUC", "paired_auc"],
        "significance": ["Comparison", "Paired", "against_best", "holm", "paired"],
        "splits": ["TimeShares", "between"],
    },
)

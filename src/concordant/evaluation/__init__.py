"""Evaluation of rankers: metrics, paired tests, intervals and reports."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "evaluated": ["Evaluation", "evaluate"],
        "model_comparison": ["compare"],
        "model_comparison_result": ["ComparisonSettings", "ModelComparison", "ModelMean", "PairComparison"],
        "outcomes": [
            "OutcomeCalibration",
            "OutcomeReport",
            "PairedAUC",
            "calibration_table",
            "evaluate_outcomes",
            "log_loss",
            "paired_auc",
            "trivial_roc",
        ],
        "outcome_plots": ["plot_calibration", "plot_roc"],
        "significance": [
            "Comparison",
            "Paired",
            "against_best",
            "benjamini_hochberg",
            "bonferroni",
            "holm",
            "paired",
        ],
        "splits": ["TimeShares", "between"],
    },
)

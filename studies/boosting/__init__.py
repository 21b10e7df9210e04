"""Boosted trees on public data: LightGBM's, XGBoost's and CatBoost's own objectives against ours."""

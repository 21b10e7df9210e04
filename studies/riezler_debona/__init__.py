"""Riezler and De Bona (2009): risk bounds of max-margin rankers, on data and where the risk is known."""

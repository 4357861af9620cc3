"""Estimators compared on recorded log-probabilities, without a model: what each would have done with the same data."""

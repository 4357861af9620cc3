"""Benchmark sets: what they are, where they come from, and which of their problems belong together. No torch."""

"""delaysim: how much rollout delay a post-training recipe survives, and what the delay buys."""

__version__ = "0.1.0"

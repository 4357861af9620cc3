"""Routing noise of a mixture of experts, apart from engine noise and drift (docs/moe_noise.md)."""

"""No rule: the gradient as it is, the learning rate as set."""

from dataclasses import dataclass


@dataclass
class Params:
    """No settings."""

    name: str = "none"

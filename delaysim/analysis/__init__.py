"""Reading run directories into tidy frames, and figures made of them. Imports no torch and never the trainer."""

from delaysim.analysis.load import Frames, by_delay, load_runs

__all__ = ["Frames", "by_delay", "load_runs"]

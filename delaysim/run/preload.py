"""Imported once by the fork server, so that every cell after the first starts with torch and transformers loaded."""

from importlib import import_module

MODULES = (
    "delaysim.policy.device", "delaysim.policy.model", "delaysim.policy.remote", "delaysim.policy.tiny",
    "delaysim.run.experiment", "delaysim.run.pilot", "delaysim.run.sampling", "delaysim.run.taskload",
    "delaysim.settings.chosen",
    "delaysim.settings.laws", "delaysim.train.learner",
)  # fmt: skip
"""What a run imports late, so that the command line stays light."""

for name in MODULES:
    import_module(name)

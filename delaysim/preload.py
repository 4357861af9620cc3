"""Imported once by the fork server, so that every cell after the first starts with torch and transformers loaded."""

import delaysim.experiment
import delaysim.learner
import delaysim.pilot
import delaysim.policy.model
import delaysim.policy.tiny  # noqa: F401

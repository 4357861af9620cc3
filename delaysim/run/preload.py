"""Imported once by the fork server, so that every cell after the first starts with torch and transformers loaded."""

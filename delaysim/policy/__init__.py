"""The model: loading or building it, sampling from it, scoring with it. Imports torch."""

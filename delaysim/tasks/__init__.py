"""Tasks: problems to train on, held-out problems, and the grading of answers. Imports no torch."""

from delaysim.tasks.base import Grade, Problem, Task

__all__ = ["Grade", "Problem", "Task"]

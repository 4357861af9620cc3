"""Answer checking: where an answer stands, what it says, and whether it is right. Imports nothing heavy."""

from delaysim.grading.extract import Extracted, extract
from delaysim.grading.golds import Gold, GoldError, make_gold
from delaysim.grading.grader import Grader, grade
from delaysim.grading.numbers import number, same_number
from delaysim.grading.scalar import UndecidedError
from delaysim.grading.verdict import Verdict

__all__ = [
    "Extracted",
    "Gold",
    "GoldError",
    "Grader",
    "UndecidedError",
    "Verdict",
    "extract",
    "grade",
    "make_gold",
    "number",
    "same_number",
]

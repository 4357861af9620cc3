"""The sets that are known by name: how many rows, which bytes, and where they are on the hub. Data, no code."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Hub:
    """A data set on the hub and how its columns read."""

    id: str
    """Its own name."""
    files: str
    """Pattern of the files that hold the split: .parquet, .jsonl or .json."""
    rows: int
    key: str
    """Template of a problem's id from its columns; {row} is its place in the split."""
    problem: str = "problem"
    answer: str = "answer"
    form: str = "plain"
    r"""How the answer stands there: plain | hash (after ####) | boxed (the last \boxed{}) | first (of a list)."""
    tolerance: str | None = None
    """Column of the tolerance."""
    unusable: int = 0
    """Rows whose answer is known to be unusable there; they are left out."""


@dataclass(frozen=True)
class BenchmarkSet:
    """One set of problems."""

    name: str
    rows: int
    sha256: str | None
    """Of NAME.jsonl, the local file with id, problem and answer on each line; None = not checked."""
    hub: Hub
    rel_tol: float | None = None
    """Customary relative tolerance, allowed where it is asked for; None = exact by custom."""
    use: str = "evaluate"
    """evaluate (one of the six) | extra (evaluated where named) | train."""


GSM8K, MATH = "openai/gsm8k", "EleutherAI/hendrycks_math"

SETS = {
    known.name: known
    for known in (
        BenchmarkSet(
            "gsm8k", 1319, "3cb0103599329aba0b104724cf470c8a39f7aeb390b5a2a863f8e91319989e14",
            Hub(GSM8K, "main/test-*.parquet", 1319, "gsm8k/test/{row}", problem="question", form="hash"),
        ),
        BenchmarkSet(
            "math500", 500, "994a7a1eb7efa944331e7f38435ee6db86217fdc58a934193f11f3eb7e04ab20",
            Hub("HuggingFaceH4/MATH-500", "test.jsonl", 500, "math/{unique_id}"),
        ),
        BenchmarkSet(
            "minerva", 272, "0befcbe5ce4f3ab43f5260eb15f1ea0b601176d49ed7e8ec682ddd17a82463fe",
            Hub("math-ai/minervamath", "*test*", 272, "minerva/{row}", problem="question"), rel_tol=0.01,
        ),
        BenchmarkSet(
            "olympiad", 675, "d0ffc7ea34b4eb16688b2cc836d7f5c4d2226cfcacfbfdd87b3d2d82d5fa7cae",
            Hub("Hothan/OlympiadBench", "*OE_TO_maths_en_COMP*", 674, "olympiad/{id}", problem="question",
                answer="final_answer", form="first", tolerance="error"),
        ),
        BenchmarkSet(
            "amc23", 40, "26dea8094a1bae9748c1f3b3323b216f466dd5ed9e3dc069fdf0db4ba2d337ec",
            Hub("math-ai/amc23", "*test*", 40, "amc23/{row}", problem="question"),
        ),
        BenchmarkSet(
            "gaokao2023en", 385, "0ff5c6ed5710319de4b59e6c0e90c8a440a40083b3bf934cf007068fdc9d7e81",
            Hub("MARIO-Math-Reasoning/Gaokao2023-Math-En", "*.json*", 385, "gaokao/{row}", problem="question",
                unusable=2),
        ),
        BenchmarkSet(
            "aime24", 30, None,
            Hub("HuggingFaceH4/aime_2024", "data/train-*.parquet", 30, "aime24/{row}"), use="extra",
        ),
        BenchmarkSet(
            "gsm8k_train", 7473, "657e235f039f6b9cf6a624f9079f34dc5e33a732b6d38209dfd766c71a61eef6",
            Hub(GSM8K, "main/train-*.parquet", 7473, "gsm8k/train/{row}", problem="question", form="hash"), use="train",
        ),
        BenchmarkSet(
            "math_train", 7500, None,
            Hub(MATH, "*/train-*.parquet", 7500, "math/train/{row}", answer="solution", form="boxed"), use="train",
        ),
    )
}  # fmt: skip
"""OlympiadBench has 674 rows on the hub, one fewer than the copy most evaluations use."""
SIX = tuple(name for name, known in SETS.items() if known.use == "evaluate")

"""Right-or-wrong answers of one run each: the problems on which two runs disagree."""

from math import sqrt

from scipy.stats import binomtest


def mcnemar_exact(b: int, c: int) -> float:
    """Exact two-sided p that b problems only A solved and c only B solved are even odds (McNemar 1947, binomial).

    1 where the runs never disagree. One seed each: it speaks of problems, not of training again.
    """
    return float(binomtest(b, b + c).pvalue) if b + c else 1.0


def net_se(b: int, c: int, problems: int) -> float:
    """Standard error of (b - c)/problems, the difference of two accuracies on the same problems."""
    return sqrt(b + c - (b - c) ** 2 / problems) / problems

"""A mean with its interval, and the variance components it comes from."""

from dataclasses import dataclass, field, replace
from math import inf, isnan, nan, sqrt

from scipy.special import stdtr, stdtrit

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Components:
    """Variance of a mean over seeds and problems, each part as a variance of that mean (mean square over S K).

    With S seeds, K clusters of problems and a constant sigma^2 per draw, the parts estimate seed/S + rest/SK,
    question/K + rest/SK, and rest/SK: the middle one is in both others, so it is subtracted once.
    """

    by_seed: float
    """Variance of the seeds' means over S: NaN with one seed."""
    by_question: float
    """Variance of the clusters' means over K: NaN with one cluster."""
    by_both: float
    """What neither explains: NaN with one seed or one cluster."""
    seeds: int
    clusters: int
    question_df: float
    """Degrees of freedom of `by_question`: K - 1, fewer where sets differ in variance."""

    @property
    def variance(self) -> float:
        """Of the mean: max(seed + question - both, seed, question), of what there is; NaN with one seed and cluster.

        The maximum stands in for components that come out negative. Where seeds' and clusters' means are all alike
        and the numbers still differ, it is `both`, not 0.
        """
        if isnan(self.by_seed) or isnan(self.by_question):
            return self.by_question if isnan(self.by_seed) else self.by_seed
        return max(self.by_seed + self.by_question - self.by_both, self.by_seed, self.by_question) or self.by_both

    @property
    def df(self) -> float:
        """Satterthwaite's degrees of freedom of `variance`, at least those of its poorer part; NaN with one seed.

        Satterthwaite (1946) has no lower bound where a mean square is subtracted; the floor is what t over the
        poorer factor alone would use.
        """
        seed_df = self.seeds - 1
        if seed_df < 1 or isnan(self.by_question):
            return float(seed_df) if seed_df >= 1 else nan
        pieces = ((self.by_seed, seed_df), (self.by_question, self.question_df))
        spread = sum(v**2 / df for v, df in (*pieces, (self.by_both, seed_df * self.question_df)))
        floor = float(min(seed_df, self.question_df))
        return max(floor, self.variance**2 / spread) if spread > 0 else floor

    def with_seeds(self, seeds: int) -> "Components":
        """The same experiment with another number of seeds, as these components predict it. NaN from one seed.

        What is common to both parts is `by_both`, but no more than the larger of them; what is left of `by_question`
        stays, all else goes with 1/S. At its own number of seeds the prediction is `variance`.
        """
        if isnan(self.by_question):
            return replace(self, by_seed=self.by_seed * self.seeds / seeds, seeds=seeds)
        common = min(self.by_both, max(self.by_seed, self.by_question) or self.by_both)
        lasting, scale = max(0.0, self.by_question - common), self.seeds / seeds
        return Components(
            scale * self.by_seed, lasting + scale * common, scale * common, seeds, self.clusters,
            self.question_df,
        )  # fmt: skip


@dataclass(frozen=True)
class Estimate:
    """A mean (of paired differences, or of scores) over seeds and problems."""

    mean: float
    se: float
    df: float
    """Of t, not a whole number in general. NaN with one seed."""
    low: float
    high: float
    p: float
    """Two-sided, against 0. NaN with one seed: nothing is known of how the next seed would differ."""
    seeds: int
    clusters: int
    confidence: float
    components: Components = field(repr=False)

    @property
    def seed_variance(self) -> bool:
        """Whether the interval knows how seeds differ. False = over problems only: no verdict stands."""
        return self.seeds > 1

    @property
    def half_width(self) -> float:
        """Of the interval."""
        return (self.high - self.low) / 2

    def at(self, confidence: float) -> "Estimate":
        """The same estimate with an interval at another confidence."""
        return estimate(self.mean, self.components, confidence)


def estimate(mean: float, components: Components, confidence: float = CONFIDENCE) -> Estimate:
    """The t interval and p of a mean whose variance has these components. Raises ValueError for a bad confidence."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence {confidence} lies between 0 and 1")
    se, df = sqrt(components.variance), components.df
    half = quantile((1 + confidence) / 2, components.question_df if components.seeds == 1 else df) * se
    return Estimate(
        mean, se, df, mean - half, mean + half, p_value(mean, se, df),
        components.seeds, components.clusters, confidence, components,
    )  # fmt: skip


def quantile(level: float, df: float) -> float:
    """Of Student's t with df degrees of freedom; NaN without any."""
    return float(stdtrit(df, level)) if df > 0 else nan


def p_value(mean: float, se: float, df: float) -> float:
    """Two-sided p of a mean against 0. Without any spread it is 1 at 0 and 0 elsewhere; NaN with df NaN."""
    return 2 * upper_tail(abs(mean), se, df)


def upper_tail(distance: float, se: float, df: float) -> float:
    """Chance that t lies above distance/se."""
    if isnan(df) or isnan(se):
        return nan
    t = distance / se if se > 0 else (inf if distance > 0 else -inf if distance < 0 else 0.0)
    return float(stdtr(df, -t))

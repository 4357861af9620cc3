"""The crossed model against statsmodels: its analysis of variance, and its mixed model fitted by REML."""

import numpy as np
import pandas as pd
import pytest

from delaysim.analysis.stats import crossed, holm

sm = pytest.importorskip("statsmodels.api")
smf = pytest.importorskip("statsmodels.formula.api")
SEEDS, QUESTIONS = 5, 12


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(11)
    return 0.3 + rng.normal(0, 0.5, (SEEDS, 1)) + rng.normal(0, 0.4, QUESTIONS) + rng.normal(0, 0.6, (SEEDS, QUESTIONS))


@pytest.fixture(scope="module")
def frame(table):
    s, q = np.indices(table.shape)
    return pd.DataFrame({"d": table.ravel(), "s": s.ravel(), "q": q.ravel(), "one": 1})


def test_parts_are_statsmodels_mean_squares(table, frame):
    anova = sm.stats.anova_lm(smf.ols("d ~ C(s) + C(q)", frame).fit())
    parts, found = crossed(table).components, anova["mean_sq"] / table.size
    assert parts.by_seed == pytest.approx(found["C(s)"], rel=1e-9)
    assert parts.by_question == pytest.approx(found["C(q)"], rel=1e-9)
    assert parts.by_both == pytest.approx(found["Residual"], rel=1e-9)


def test_the_error_is_that_of_the_mixed_model(table, frame):
    """Balanced, components positive: REML's standard error of the mean is the square root of the mean squares' sum."""
    both = {"s": "0 + C(s)", "q": "0 + C(q)"}
    model = smf.mixedlm("d ~ 1", frame, groups="one", re_formula="0", vc_formula=both)
    fit = model.fit(reml=True, method="bfgs", gtol=1e-8)
    found = crossed(table)
    assert found.mean == pytest.approx(fit.params["Intercept"], rel=1e-6)
    assert found.se == pytest.approx(fit.bse["Intercept"], rel=1e-3)


def test_holm_is_statsmodels(table):
    p = np.abs(table).ravel() / 20
    wanted = sm.stats.multipletests(p, method="holm")[1]
    assert holm(p) == pytest.approx(wanted, rel=1e-12)

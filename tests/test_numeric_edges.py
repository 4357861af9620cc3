"""Numbers at the edge of what a float holds, files of another kind, and rule settings without meaning."""

import pytest
import torch
from estimators.batches import batch_of
from settings import make_config

from delaysim import measures
from delaysim.errors import UserError
from delaysim.estimators import make
from delaysim.ratios import read_frames
from delaysim.rules import gac


@pytest.mark.parametrize("text", ['{"update":0}\n' * 50, "PAR1\x15\x04\x15\x10" * 9, "some text of any kind"])
def test_a_text_file_is_no_record_of_ratios(tmp_path, text):
    """Its first eight bytes are a length beyond 2^40, which counts as a torn frame: no error, no frames."""
    (tmp_path / "ratios.bin").write_text(text)
    with pytest.raises(UserError, match="is not a record of ratios"):
        list(read_frames(tmp_path / "ratios.bin"))


@pytest.mark.parametrize("level", [-380.0, -500.0])
def test_agreement_does_not_depend_on_the_size_of_rho(level):
    """All four responses very unlikely by now: kappa is a number, its square is not; inf instead of 1."""
    delta = torch.tensor([level, level - 1, level - 2, level - 3], dtype=torch.float64).view(1, 4, 1)
    batch = batch_of(delta - 1, 0 * delta - 1, torch.ones_like(delta), torch.tensor([[1.0, -1.0, 1.0, -1.0]]).double())
    kappa = make("gmc").coefficients(batch)
    assert kappa.all()
    assert float(measures.agreement(batch, kappa)) == pytest.approx(1.0)


def test_kept_weights_that_are_equal_but_for_rounding_have_no_correlation():
    """tis with every response at its cap: kept is 1.1 eight times, to the last digit or the last but one."""
    mask = (torch.arange(9) < torch.arange(1, 9)[:, None]).double()[None]
    batch = batch_of(-mask, -1.5 * mask, mask, torch.ones(1, 8).double())
    kept = measures.kept(batch, make("tis", cap=1.1).coefficients(batch))
    assert kept.flatten().tolist() == pytest.approx([1.1] * 8, rel=1e-14)
    assert measures.correlation(kept, batch.lengths) is None


@pytest.mark.parametrize("action", ["remove", "floor"])
def test_gac_of_vanishing_gradients_in_single_precision(action):
    """Norms whose squares are no float32: the unit vector is infinite, and a run would end as collapsed."""
    previous = torch.tensor([1e-25, 2e-25, 3e-25])
    gradient = torch.tensor([1e-25, 2e-25, 3.5e-25])
    found, _ = gac.direction(gradient, previous, gac.Params(above=action, between=action))
    assert found.isfinite().all()
    assert abs(gac.cosine(found, previous)) < 0.051


@pytest.mark.parametrize(
    "overrides", [("rule=vcpo", "rule.base=0"), ("rule=gac", "rule.low=1"), ("rule=gac", "rule.low=0.4")]
)
def test_rule_settings_that_cannot_be_meant_are_refused(overrides):
    """base 0 divides by 0 at the first update; low 1 divides by 0; low above high leaves `between` without a case."""
    with pytest.raises(UserError, match=r"rule\."):
        make_config(*overrides)

"""The libraries, read once; skipped where their wheels are missing."""

import pytest
import torch
from oracles.libraries import Trl, Verl


@pytest.fixture(autouse=True)
def double():
    """The libraries make constants of torch's default type; in single precision those alone cost 5e-8."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@pytest.fixture(scope="session")
def trl():
    return Trl()


@pytest.fixture(scope="session")
def verl():
    return Verl()

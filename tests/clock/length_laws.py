"""The default law of response lengths, and its tail multiplier in closed form."""

import numpy as np
from scipy.stats import norm

from delaysim.clock.lengths import Lognormal

HEAVY = Lognormal(600, 0.7, 0.5, 3072)


def expected_tail(law, size):
    """E[longest of `size`] / E[length] of a capped lognormal: a quadrature over what the group shares."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    edges = np.log(np.arange(law.cap) + 0.5)[:, None]  # lengths are whole: E = sum over k >= 0 of P(length > k + 1/2)
    shared, own = law.sigma * np.sqrt(law.prompt_share), law.sigma * np.sqrt(1 - law.prompt_share)
    below = norm.cdf((edges - np.log(law.mean) + law.sigma**2 / 2 - shared * nodes) / own)
    return ((1 - below**size) @ weights).sum() / ((1 - below) @ weights).sum()

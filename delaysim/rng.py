"""Counter-based random streams, keyed by what is drawn and never by the order of drawing."""

import zlib

import numpy as np


def stream(seed: int, name: str, *key: int) -> np.random.Generator:
    """The generator of one named stream.

    `seed` is the run's or the model's seed, `name` the stream ("prompt", "sampling", ...), `key` the
    coordinates of the draw (group, attempt, response, ...). Equal arguments give equal draws, whatever
    else was drawn before.
    """
    words = np.random.SeedSequence([seed, zlib.crc32(name.encode()), *key])
    return np.random.Generator(np.random.Philox(words))

"""One training run and its directory: the clock asks, this generates, trains, evaluates, records and saves."""

"""The errors a user can cause; each is printed as one line and ends with the exit code it names."""


class UserError(Exception):
    """Bad configuration or input (exit 2). The message says what is wrong, where, and what to type instead."""

    exit_code = 2


class RunFailed(UserError):
    """A run that had started and cannot go on (exit 1). What was written stays."""

    exit_code = 1


class SamplerFailed(RunFailed):
    """The engine that generates died, ran out of memory or time, or holds other weights; the state can be saved."""


class Interrupted(UserError):
    """The user asked a run to stop (exit 130). Its state is saved."""

    exit_code = 130

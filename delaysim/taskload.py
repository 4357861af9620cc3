"""The task a configuration names. No torch."""

from delaysim.config import ChainConf, Config
from delaysim.tasks import Task
from delaysim.tasks.chain import Chain


def load_task(cfg: Config) -> Task:
    """Build the task and read its files. Raises UserError on a file that is missing or malformed."""
    if isinstance(cfg.task, ChainConf):
        return Chain(cfg.task.min_terms, cfg.task.max_terms)
    from delaysim.tasks.gsm8k import load_gsm8k

    return load_gsm8k(cfg.task, cfg.evaluation.problems)

"""Runs that are stopped on the way and go on, for whatever must survive it."""

from settings import fingerprint, run, small_config

from delaysim.run import experiment


def finished(overrides, path):
    """The fingerprint of a run that nothing stopped."""
    assert run(small_config(*overrides), path).state == "done"
    return fingerprint(path)


def stopped_and_resumed(overrides, path, monkeypatch, update=3, make=small_config):
    """The fingerprint of one stopped after `update`, which is no multiple of its checkpoints, and started again."""
    train = experiment.Experiment._train

    def stop_then_train(self, asked, *meanwhile):
        self.stopping = asked.update == update
        train(self, asked, *meanwhile)

    with monkeypatch.context() as patch:
        patch.setattr(experiment.Experiment, "_train", stop_then_train)
        assert run(make(*overrides), path).state == "interrupted"
    assert run(make(*overrides, "resume=must"), path).state == "done"
    return fingerprint(path)

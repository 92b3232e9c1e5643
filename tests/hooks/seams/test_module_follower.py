"""A model that is pickled while it is followed leaves the follower behind."""

import pickle
from types import SimpleNamespace

from clew.hooks.seams.module_seam import ModelFollower


def test_a_follower_that_was_sent_elsewhere_follows_nothing():
    follower = pickle.loads(pickle.dumps(ModelFollower(SimpleNamespace())))
    assert follower.machine is None

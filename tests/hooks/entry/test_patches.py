"""Functions of torch are wrapped and restored without a trace."""

import types
import warnings

from clew.hooks.entry.patches import Patches


def owner_with(function):
    return types.SimpleNamespace(loss=function)


def test_a_patch_is_removed_without_a_trace():
    def loss(x):
        return x + 1

    owner = owner_with(loss)
    patches = Patches()
    patches.wrap(owner, "loss", lambda original: lambda *a: original(*a) * 10)
    assert owner.loss(1) == 20
    assert owner.loss.__name__ == "loss"
    patches.remove()
    assert owner.loss is loss


def test_someone_elses_wrapper_on_top_of_ours_is_kept():
    owner = owner_with(lambda x: x)
    patches = Patches()
    patches.wrap(owner, "loss", lambda original: lambda x: original(x))
    ours = owner.loss

    def theirs(x):
        return ours(x)

    owner.loss = theirs
    patches.remove()
    assert owner.loss is theirs


def test_a_warning_from_a_wrapped_function_points_at_the_callers_line():
    def noisy():
        warnings.warn("look here", stacklevel=2)

    owner = owner_with(noisy)
    Patches().wrap(owner, "loss", lambda original: lambda: original())
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        owner.loss()
    assert [w.filename for w in seen] == [__file__]

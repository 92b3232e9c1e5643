from __future__ import annotations

import random

from fake_run import FakeRun, findings, weight

from clew.checks.grad.vanishing_gradient import VanishingGradient
from clew.records.finding import Severity

CHECK = VanishingGradient()


def network(
    *gradients: float, samples: int = 20, kinds: dict[int, str] | None = None, shuffled: bool = False
) -> FakeRun:
    """Layers l0, l1, … with these gradients and weights of norm 1."""
    layers = [(f"l{n}", (kinds or {}).get(n, "Linear")) for n in range(len(gradients))]
    run = FakeRun().model(*layers)
    order = list(range(len(gradients)))
    if shuffled:
        random.Random(1).shuffle(order)
    for n in order:
        run.signal("gradient.norm", [gradients[n]] * samples, weight(f"l{n}"))
        run.signal("weight.norm", [1.0] * samples, weight(f"l{n}"))
    return run


def test_a_gradient_that_shrinks_more_than_a_hundredfold_is_found_at_the_first_layer() -> None:
    (found,) = findings(CHECK, network(0.0099, 0.1, 1.0, 1.0))
    assert (found.severity, found.site, found.step) == (Severity.WARNING, weight("l0"), 0)
    assert "shrinks 101-fold on its way back through 4 layers: l0.weight" in found.message


def test_growth_of_just_a_hundredfold_is_not_found() -> None:
    assert not findings(CHECK, network(0.0101, 0.1, 1.0, 1.0))


def test_one_sample_too_few_gives_no_verdict() -> None:
    run = network(1e-6, 1e-3, 1.0, 1.0, samples=17)
    assert not findings(CHECK, run)
    assert CHECK.unjudged(run.view()) == "needs 20 sampled steps, has 17"


def test_the_order_of_recording_does_not_matter() -> None:
    gradients = [10.0 ** -(8 - n) for n in range(8)]
    straight = findings(CHECK, network(*gradients))
    assert straight
    assert findings(CHECK, network(*gradients, shuffled=True)) == straight


def test_a_large_gradient_at_the_output_alone_is_fine() -> None:
    assert not findings(CHECK, network(1.0, 1.0, 1.0, 1.0, 1e6))


def test_small_gradients_everywhere_are_convergence() -> None:
    assert not findings(CHECK, network(*[1e-9] * 6))


def test_embeddings_are_left_out() -> None:
    gradients = (1e-9, 1.0, 1.0, 1.0, 1.0)
    assert not findings(CHECK, network(*gradients, kinds={0: "Embedding"}))


def test_two_layers_have_no_depth() -> None:
    assert not findings(CHECK, network(1e-9, 1.0))


def test_layers_without_a_gradient_are_left_out() -> None:
    assert not findings(CHECK, network(0.0, 0.0, 1.0, 1.0, 1.0, 1.0))
    assert findings(CHECK, network(0.0, 1e-6, 1e-3, 1.0, 1.0))


def test_zero_initialised_weights_do_not_count_before_they_moved() -> None:
    run = network(1e-3, 1e-3, 1e-3, 1.0)
    run.signal("weight.norm", [0.0] * 20, weight("zero")).signal("gradient.norm", [1.0] * 20, weight("zero"))
    assert not findings(CHECK, run)


def test_a_network_that_recovered_is_fine() -> None:
    run = network(1e-6, 1e-3, 1.0, 1.0)
    for n in range(4):
        run.signal("gradient.norm", [1.0] * 20, weight(f"l{n}"), range(20, 40))
        run.signal("weight.norm", [1.0] * 20, weight(f"l{n}"), range(20, 40))
    assert not findings(CHECK, run)


def test_what_squashes_is_named_in_the_fix() -> None:
    run = network(1e-6, 1e-3, 1.0, 1.0)
    assert "kaiming_normal_" in findings(CHECK, run)[0].fix
    run = network(1e-6, 1e-3, 1.0, 1.0).model(
        *((f"l{n}", "Linear") for n in range(4)), ("act", "Sigmoid"), root="model"
    )
    assert findings(CHECK, run)[0].fix == "nn.ReLU() or nn.GELU() in place of sigmoid"

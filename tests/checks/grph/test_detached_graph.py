from __future__ import annotations

from typing import Any

from fake_run import STEP, Fact, FakeRun, findings, parameter, weight

from clew.checks.grph.detached_graph import DetachedGraph
from clew.records.finding import Severity

CHECK = DetachedGraph()
CUT = {"op": "detach", "file": "net.py", "line": 21}


def network(*without_gradient: str, loaded: bool = False, **graph: Any) -> FakeRun:
    run = FakeRun().model(("a", "Linear"), ("b", "Linear"))
    items = [parameter(m, has_grad=m not in without_gradient, loaded=loaded) for m in ("a", "b")]
    return run.parameters(*items).fact("graph", 3, **{"root": "model", "reached": 1, **graph})


def test_a_layer_that_runs_without_ever_a_gradient_is_found_where_it_was_cut_off() -> None:
    (found,) = findings(CHECK, network("a", cut=["a.weight"], cuts=[CUT]))
    assert (found.severity, found.site.module, found.site.line) == (Severity.WARNING, "a", 21)
    assert "a runs in the forward pass but gets no gradient: detach() cuts the graph" in found.message


def test_logging_a_number_is_suspected_last() -> None:
    number = {"op": "item", "file": "net.py", "line": 3}
    (found,) = findings(CHECK, network("a", cut=["a.weight"], cuts=[number, CUT]))
    assert found.site.line == 21


def test_a_gradient_at_any_time_clears_the_suspicion() -> None:
    assert not findings(CHECK, network(cut=["a.weight"], cuts=[CUT]))
    run = network("a", cut=["a.weight"]).signal("gradient.norm", [1.0], weight("a"))
    assert not findings(CHECK, run)


def test_what_no_optimizer_holds_is_cut_off_on_purpose() -> None:
    run = network("a", cut=["a.weight"]).parameters(parameter("a", has_grad=False, optimizer=None))
    assert not findings(CHECK, run)


def test_random_layers_under_no_grad_are_found_and_loaded_ones_are_a_choice() -> None:
    (found,) = findings(CHECK, network("a", cut_by_no_grad=["a.weight"]))
    assert "a no_grad block cuts the graph" in found.message
    assert not findings(CHECK, network("a", cut_by_no_grad=["a.weight"], loaded=True))


def test_layers_that_never_ran_are_another_fault() -> None:
    assert not findings(CHECK, network("a", idle=["a.weight"]))


def rewrapped(present: float) -> FakeRun:
    run = FakeRun().fact("loss_cut", requires_grad=True, forwards=1, trainable=True, file="train.py", line=30)
    return run.signal("grad.present", [present] * 3, STEP)


def test_a_loss_without_a_history_is_an_error_at_backward() -> None:
    (found,) = findings(CHECK, rewrapped(0.0))
    assert (found.severity, found.site.line) == (Severity.ERROR, 30)
    assert not findings(CHECK, rewrapped(0.5))


def test_a_backward_that_fails_is_explained_only_if_it_ended_the_run() -> None:
    run = FakeRun().fact("loss_cut", requires_grad=False, grad_enabled=False, file="train.py", line=30)
    assert not findings(CHECK, run)
    run.events.append(Fact("exception", 0, {"message": "element 0 of tensors does not require grad"}))
    (found,) = findings(CHECK, run)
    assert "gradients are switched off here" in found.message


def test_one_parameter_of_a_layer_that_learns_is_not_cut_off() -> None:
    run = network("a", cut=["a.bias"])
    run.parameters(parameter("a"), parameter("a", "bias", has_grad=False), parameter("b"))
    assert not findings(CHECK, run)


def test_a_whole_model_may_wait_for_its_turn_while_another_one_trains() -> None:
    def critic_first(steps: int) -> FakeRun:
        run = network("a", "b", reached=0, cut=["a.weight", "b.weight"])
        return run.fact("graph", 3, root="critic", reached=6).signal("loss", [1.0] * steps)

    assert not findings(CHECK, critic_first(49))
    (found,) = findings(CHECK, critic_first(50))
    assert found.severity is Severity.ERROR

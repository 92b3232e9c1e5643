"""What one step is: the order of its events, and which optimizer ends it."""

from clew.hooks.steps.optimizer_steps import Cycle
from clew.hooks.steps.step_clock import Pattern, fold


def test_repeats_in_the_order_of_events_are_folded():
    assert "".join(fold(list("dzfbs"))) == "dzfbs"
    assert "".join(fold(list("dedededezfbs"))) == "(de)+zfbs"
    assert "".join(fold(list("eeeezfbs"))) == "e+zfbs"
    assert "".join(fold(list("dfbdfbdfbs"))) == "(dfb)+s"


def test_equal_steps_have_equal_patterns_whatever_the_length_of_an_evaluation():
    announced = []
    pattern = Pattern(lambda number, text: announced.append((number, text)))
    numbers = []
    for evaluations in (3, 700, 3, 5):
        for _ in range(evaluations):
            pattern.add("d")
            pattern.add("e")
        pattern.add("f")
        pattern.add("s", 1)
        numbers.append(pattern.close())
    assert len(set(numbers)) == 1
    assert announced == [(0, "(de)+fs1")]


def ends(sequence):
    cycle = Cycle()
    return [cycle.ends_with(index) for index in sequence]


def test_every_step_of_a_single_optimizer_ends_a_step():
    assert ends([0, 0, 0]) == [True, True, True]


def test_a_round_of_two_optimizers_is_a_step_once_it_is_known():
    assert ends([0, 1, 0, 1, 0, 1]) == [True, False, False, True, False, True]


def test_several_critic_steps_belong_to_one_generator_step():
    assert ends([0, 0, 1, 0, 0, 1, 0, 0, 1])[3:] == [False, False, True, False, False, True]


def test_an_optimizer_of_a_second_training_takes_over():
    assert ends([0, 0, 1, 1, 1]) == [True, True, False, True, True]
    assert ends([0, 1, 0, 1, 2, 2, 2])[4:] == [False, True, True]


def test_where_the_first_optimizer_is_gone_another_takes_over_at_once():
    cycle = Cycle(exists=lambda index: index != 0)
    assert [cycle.ends_with(index) for index in [0, 0, 1, 1]] == [True, True, True, True]


def test_a_closer_that_stops_stepping_is_not_waited_for():
    assert ends([0, 1, 0, 1] + [0] * 8)[-3:] == [True, True, True]

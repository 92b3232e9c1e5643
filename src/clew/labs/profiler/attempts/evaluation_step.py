"""Evaluation with gradients against evaluation in `inference_mode`: the models' forwards alone."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch

from clew.labs.profiler.attempts.paired_rounds import Half
from clew.labs.profiler.attempts.same_results import evaluating, model_calls
from clew.labs.profiler.attempts.trainee import Trainee
from clew.labs.snapshot.time_limit import CannotJudge


def evaluation_halves(trainee: Trainee, now: Callable[[], float]) -> tuple[Half, Half]:
    """Forwards of one batch, as a graph is kept for them and as it is not."""
    calls = model_calls(trainee, trainee.subject.batch())
    if not calls:
        raise CannotJudge("the step calls no model")
    models = trainee.subject.models

    def half(mode: Callable[[], AbstractContextManager[Any]]) -> Half:
        def forwards(count: int) -> float:
            taken = []
            with evaluating(list(models.values())), mode():
                for _ in range(count + 1):
                    began = now()
                    for name, args, kwargs in calls:
                        models[name](*args, **kwargs)
                    taken.append(now() - began)
            return statistics.median(taken[1:])

        return forwards

    return half(contextlib.nullcontext), half(torch.inference_mode)

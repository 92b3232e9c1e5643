"""Does a forward create tensors with a fixed device or dtype? Runs it on the meta device and in float64."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from clew.hooks.entry.user_line import user_frame
from clew.labs.experiments.base import Experiment, Result
from clew.labs.experiments.tools.float64_step import double_state, doubled
from clew.labs.network.device_literals import CannotTrace, device_literal
from clew.labs.network.network_inputs import ForwardInputs
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock, first_line
from clew.labs.snapshot.users_step.model_calls import ModelCall, few_samples, in_mode, model_calls
from clew.records.facts.network_experiment_facts import CpuTensor, DeviceLiteralFact, FixedDtype

_TYPES = ("dtype", "scalar type", "same type", "Double", "double")  # in torch's message on mixed dtypes


@dataclass(frozen=True)
class MetaForward(Experiment):
    name = "device-literal"
    question = "would the model run on another device and in another precision?"
    rank = 9

    def run(self, subject: Subject, clock: Clock) -> Result:
        batch = few_samples(subject)
        found = DeviceLiteralFact()
        with subject.snapshot(seed=0) as snapshot, in_mode(subject.models.values(), training=False):
            for call in model_calls(snapshot, batch):
                clock.tick()
                if any(t.device.type != "cpu" for t in (*call.tensors(), *call.module.parameters())):
                    raise CannotJudge("it already runs on another device")
                found = replace(
                    found,
                    models=found.models + 1,
                    device=found.device or _fixed_device(call),
                    dtype=found.dtype or _fixed_dtype(call),
                )
        if not found.models:
            raise CannotJudge("no model was called in the step")
        return Result(found)


def _fixed_device(call: ModelCall) -> CpuTensor | None:
    """The CPU tensor that was combined with the model's tensors on another device."""
    try:
        return device_literal(call.module, ForwardInputs(call.args, dict(call.kwargs)), call.name)
    except CannotTrace:
        return None


def _fixed_dtype(call: ModelCall) -> FixedDtype | None:
    """The line on which double precision was combined with another dtype."""
    if any(t.dtype in (torch.float16, torch.bfloat16) for t in call.module.parameters()):
        return None
    try:
        with double_state([call.module]), torch.autocast("cpu", enabled=False), torch.no_grad():
            call.changed(doubled).again()
    except Exception as error:  # noqa: BLE001 - the user's code in a precision it was not written for
        message = first_line(error)
        if not any(word in message for word in _TYPES):
            return None
        return FixedDtype(None, call.name, "", *user_frame(error.__traceback__), message[:200])
    return None

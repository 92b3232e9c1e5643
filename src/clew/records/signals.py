"""The register of signals: every series that Clew records, its unit, site, meaning and place in the browser.

To add a signal, add it here and write it in its collector. The documentation (docs/signals.md), the units,
groups and titles in the browser, and what a check can name in its `needs` all come from this list. A run of a
newer Clew may have signals that are not listed: `known_as` returns what is known of them.
"""

from __future__ import annotations

from functools import lru_cache

from clew.records.signal_types import Chart, Family, Group, LayerHeatMap, Signal, TensorSignals, is_histogram

EVERY_STEP = "every step"
SAMPLED = "sampled steps"
OPTIMIZER_STEP = "every optimizer step"
EVALUATION = "every evaluation section"

LOSS_CALL = "the loss call"
STEP_CALL = "the `step()` call, op `step`"
FIRST_INPUT_SITE = "root, op `input[0]`"
MODULE = "module (op: activation function if it is a function call, as `relu`)"
PARAMETER = "module and param"

# -- groups, in the order in which people look for them --

LOSSES = Group("loss", compared=True)
METRICS = Group("metric", compared=True)
RATES = Group("lr", compared=True)
GRAD = Group("grad", compared=True)
CLIPPING = Group("clip", compared=True)
TIMES = Group("time", compared=True)
PROCESS_MEMORY = Group("memory", compared=True)
BATCHES = Group("batch", compared=True)
ACTIVATIONS = Group("activation", layered=True)
GRADIENTS = Group("gradient", layered=True)
WEIGHTS = Group("weight", layered=True)
UPDATES = Group("update", layered=True)
ARRIVING = Group("first_input", layered=True)
INPUTS = Group("input", layered=True)
EVAL_INPUTS = Group("eval_input", layered=True)
EVAL_BATCHES = Group("eval")
EVALUATIONS = Group("evaluation")
EVENTS = Group("events")
LABELS = Group("label")
LOSS_CALLS = Group("loss_call")
LOSS_INPUTS = Group("loss_input")
MASKS = Group("mask")
MODES = Group("mode")
NOISES = Group("noise")
PREDICTIONS = Group("prediction")
PRETRAINED = Group("pretrained")
SAMPLES = Group("sample")
TARGETS = Group("target")
TERMS = Group("term")

GROUPS = (
    LOSSES,
    METRICS,
    RATES,
    GRAD,
    CLIPPING,
    TIMES,
    PROCESS_MEMORY,
    BATCHES,
    ACTIVATIONS,
    GRADIENTS,
    WEIGHTS,
    UPDATES,
)

# -- charts at the top of the charts page --

LOSS_CHART = Chart("Loss", large=True, by_place=True, compared=0)
METRIC_CHART = Chart("", together=False, compared=1)
RATE_CHART = Chart("Learning rate", compared=3)
NORM_CHART = Chart("Gradient norm", together=False, compared=2)
STEP_CHART = Chart("Step time", robust=True)
MEMORY_CHART = Chart("Memory")

# -- every step --

WALL = Signal(
    "wall", TIMES, "Time since the start", "seconds since the run began, at the step's end", "s", EVERY_STEP
)
STEP_TIME = Signal(
    "step.time",
    TIMES,
    "Step time",
    "seconds from the end of the previous step to the end of this one",
    "s",
    EVERY_STEP,
    chart=STEP_CHART,
    line="whole step",
)
TIME_DATA = Signal(
    "time.data",
    TIMES,
    "Waiting for data",
    "waiting for the loader; a part of `step.time`",
    "s",
    EVERY_STEP,
    chart=STEP_CHART,
    line="data",
)
TIME_FORWARD = Signal(
    "time.forward",
    TIMES,
    "Forward",
    "in the model's forward; a part of `step.time`",
    "s",
    EVERY_STEP,
    chart=STEP_CHART,
    line="forward",
)
TIME_BACKWARD = Signal(
    "time.backward",
    TIMES,
    "Backward",
    "in `backward()`; a part of `step.time`",
    "s",
    EVERY_STEP,
    chart=STEP_CHART,
    line="backward",
)
TIME_OPTIMIZER = Signal(
    "time.optimizer",
    TIMES,
    "Optimizer step",
    "in the optimizer's `step()`; a part of `step.time`",
    "s",
    EVERY_STEP,
    chart=STEP_CHART,
    line="optimizer",
)
TIME_REST = Signal(
    "time.rest",
    TIMES,
    "Rest of the step",
    "the rest of `step.time`, without Clew's own time",
    "s",
    EVERY_STEP,
)
TIME_CLEW = Signal(
    "time.clew", TIMES, "Clew's own time", "Clew's own seconds on the training thread", "s", EVERY_STEP
)
BATCH_SIZE = Signal(
    "batch.size",
    BATCHES,
    "Batch size",
    "samples in the step's batches; 0 if unknown",
    "count",
    EVERY_STEP,
)
MEMORY_RSS = Signal(
    "memory.rss",
    PROCESS_MEMORY,
    "Memory",
    "memory of the process (read at most every 0.25 s, repeated in between)",
    "B",
    EVERY_STEP,
    chart=MEMORY_CHART,
    line="rss",
)
EVENTS_PATTERN = Signal(
    "events.pattern",
    EVENTS,
    "Order of events",
    "id of the step's order of events: see the `pattern` fact",
    when=EVERY_STEP,
)

# -- the loop --

LOSS = Signal(
    "loss",
    LOSSES,
    "Loss",
    "value of the tensor that `backward()` was called on; in evaluation the mean of a loss call over the "
    "section (the forward passes without gradients between two steps)",
    when="every `backward()` call; every evaluation section",
    site="the `backward()` call, op `backward`, phase train; the loss call, phase eval",
    chart=LOSS_CHART,
    line="training",
)
GRAD_NORM = Signal(
    "grad.norm",
    GRAD,
    "Gradient norm",
    "2-norm over all gradients that the optimizer is about to use",
    when=OPTIMIZER_STEP,
    site=STEP_CALL,
    chart=NORM_CHART,
)
GRAD_STALE = Signal(
    "grad.stale",
    GRAD,
    "Stale gradients",
    "1 if gradients of an earlier step were not cleared before new ones were added, else 0",
    site=STEP_CALL,
)
GRAD_BACKWARDS = Signal(
    "grad.backwards",
    GRAD,
    "Backward passes per step",
    "backward passes since this optimizer's last step",
    "count",
    site=STEP_CALL,
)
GRAD_LOST = Signal(
    "grad.lost",
    GRAD,
    "Lost gradients",
    "backward passes since this optimizer's last step whose gradients were cleared before any optimizer "
    "used them (0 if the weights changed in between, or if the gradients used were set by hand)",
    "count",
    site=STEP_CALL,
)
GRAD_PRESENT = Signal(
    "grad.present",
    GRAD,
    "Parameters with a gradient",
    "share of the optimizer's trainable parameters that have a gradient",
    "share",
    site=STEP_CALL,
)
LR = Signal(
    "lr",
    RATES,
    "Learning rate",
    "learning rate of the first parameter group",
    when=OPTIMIZER_STEP,
    site="the `step()` call",
    chart=RATE_CHART,
)
LR_GROUP = Family(
    "lr",
    RATES,
    "Learning rate",
    "learning rate of the further parameter groups, `lr.1`, `lr.2`, … (up to 8)",
    when=OPTIMIZER_STEP,
    site="the `step()` call",
    chart=RATE_CHART,
    placeholder="group",
)
CLIP_NORM = Signal(
    "clip.norm",
    CLIPPING,
    "Norm before clipping",
    "total norm before clipping",
    when="every clip call",
    site="the clip call, op `clip`",
)
CLIP_LIMIT = Signal(
    "clip.limit",
    CLIPPING,
    "Clipping limit",
    "the clipping limit",
    when="every clip call",
    site="the clip call, op `clip`",
)
METRIC = Family(
    "metric",
    METRICS,
    "",
    "a number logged with `clew.log`",
    when="`clew.log`",
    site="the call",
    chart=METRIC_CHART,
)
MODE_TRAINING = Signal(
    "mode.training",
    MODES,
    "Training mode",
    "1 if `root.training`, else 0",
    when="sampled forward passes in training, one in ten of the others, and all in evaluation mode",
    site="root",
)
EVALUATION_SITE = "root, and the line of its first forward, phase eval"
MODE_EVALUATION = Signal(
    "mode.evaluation",
    MODES,
    "Training mode in evaluation",
    "1 if all forward passes without gradients ran in training mode",
    when=EVALUATION,
    site=EVALUATION_SITE,
)
EVALUATION_FORWARDS = Signal(
    "evaluation.forwards",
    EVALUATIONS,
    "Forward passes in evaluation",
    "number of forward passes without gradients",
    "count",
    EVALUATION,
    EVALUATION_SITE,
)
EVALUATION_BATCHES = Signal(
    "evaluation.batches",
    EVALUATIONS,
    "Batches in evaluation",
    "how many of these forward passes got consecutive batches of a loader",
    "count",
    EVALUATION,
    EVALUATION_SITE,
)

# -- layers and parameters --

ACTIVATION = TensorSignals(
    "activation",
    ACTIVATIONS,
    "Activation",
    "output statistics, training phase only",
    MODULE,
    log2hist=True,
    histogram=True,
    glance=("mean", "std"),
    layer_maps=(
        ("std", LayerHeatMap(4, "log", kept=True)),
        ("mean", LayerHeatMap(5, "diverging", kept=True)),
        ("zeros", LayerHeatMap(9, "share")),
        ("nonfinite", LayerHeatMap(10, "log")),
    ),
)
ACTIVATION_DEAD_FRACTION = Signal(
    "activation.dead_fraction",
    ACTIVATIONS,
    "Dead units",
    "share of units that are zero for the whole batch; NaN unless ReLU-like",
    "share",
    site=MODULE,
    glance=True,
    layer_map=LayerHeatMap(3, "share", (0, 0.4), kept=True, partial=True),
)
ACTIVATION_SATURATED = Signal(
    "activation.saturated",
    ACTIVATIONS,
    "Saturated values",
    "share of values in the flat parts of sigmoid, tanh, …; NaN for other layers",
    "share",
    site=MODULE,
    glance=True,
    layer_map=LayerHeatMap(6, "share", (0, 0.4), kept=True, partial=True),
)
GRADIENT = TensorSignals(
    "gradient",
    GRADIENTS,
    "Gradient",
    "statistics of a parameter's gradient",
    PARAMETER,
    log2hist=True,
    histogram=True,
    glance=("norm",),
    layer_maps=(
        ("norm", LayerHeatMap(1, "log", kept=True)),
        ("std", LayerHeatMap(11, "log")),
        ("zeros", LayerHeatMap(12, "share")),
        ("nonfinite", LayerHeatMap(13, "log")),
    ),
)
WEIGHT = TensorSignals(
    "weight",
    WEIGHTS,
    "Weight",
    "statistics of a parameter's value before the step",
    PARAMETER,
    log2hist=True,
    histogram=True,
    glance=("norm",),
    layer_maps=(("norm", LayerHeatMap(14, "log", kept=True)), ("std", LayerHeatMap(15, "log"))),
)
UPDATE = TensorSignals(
    "update",
    UPDATES,
    "Update",
    "statistics of the change that the step made",
    PARAMETER,
    log2hist=True,
    layer_maps=(("norm", LayerHeatMap(16, "log")),),
)
UPDATE_RATIO = Signal(
    "update.ratio",
    UPDATES,
    "Update ratio",
    "norm of the update divided by norm of the value; from up to 16,384 elements in evenly spaced blocks",
    site=PARAMETER,
    glance=True,
    layer_map=LayerHeatMap(2, "log", (1e-4, 1e-2), kept=True),
)

# -- inputs of the model --

INPUT = TensorSignals("input", INPUTS, "Input", "the model's floating-point inputs", "root, op `input[0]` …")
FEATURE_SPREAD = "standard deviations of the features of a 2-D input: largest divided by median; 1 if unknown"
INPUT_FEATURE_SPREAD = Signal(
    "input.feature_spread", INPUTS, "Spread of the input's features", FEATURE_SPREAD, site=INPUT.site
)
FIRST_INPUT = TensorSignals(
    "first_input",
    ARRIVING,
    "First layer's input",
    "input of that layer, after any normalisation inside the model",
    "first Linear/Conv/RNN layer of the root that ran",
)
FIRST_INPUT_FEATURE_SPREAD = Signal(
    "first_input.feature_spread",
    ARRIVING,
    "Spread of the first layer's input features",
    FEATURE_SPREAD,
    site=FIRST_INPUT.site,
)
BATCH_HASH = Signal(
    "batch.hash",
    BATCHES,
    "Content of the batch",
    "content hash of the first input (48 bits, as a number)",
    site="root",
)
SAMPLE_COUNT = Signal(
    "sample.count", SAMPLES, "Samples", "samples of the first input", "count", site=FIRST_INPUT_SITE
)
SAMPLE_DISTINCT = Signal(
    "sample.distinct",
    SAMPLES,
    "Distinct samples",
    "share of samples with distinct content",
    "share",
    site=FIRST_INPUT_SITE,
)
SAMPLE_CONSTANT = Signal(
    "sample.constant",
    SAMPLES,
    "Constant samples",
    "share of samples with a single value",
    "share",
    site=FIRST_INPUT_SITE,
)
SAMPLE_CONSTANT_FEATURES = Signal(
    "sample.constant_features",
    SAMPLES,
    "Constant features",
    "share of features that have not varied so far in the run",
    "share",
    site=FIRST_INPUT_SITE,
)
SAMPLE_FEATURES = Signal(
    "sample.features",
    SAMPLES,
    "Values per sample",
    "number of values in a sample",
    "count",
    site=FIRST_INPUT_SITE,
)
SAMPLE_SEEN = Signal(
    "sample.seen",
    SAMPLES,
    "Samples seen before",
    "share of samples that are bit-identical to samples of an earlier sampled step",
    "share",
    site=FIRST_INPUT_SITE,
)
SAMPLE_RELABELLED = Signal(
    "sample.relabelled",
    SAMPLES,
    "Relabelled samples",
    "share of the samples seen before whose label has changed (NaN if unknown)",
    "share",
    site=FIRST_INPUT_SITE,
)
SAMPLE_SLICED = Signal(
    "sample.sliced",
    SAMPLES,
    "Rows of the sliced tensor",
    "rows of the tensor that the batch was sliced from (0 if it was not)",
    site=FIRST_INPUT_SITE,
)
PRETRAINED_SITE = "the first BatchNorm of a model into which weights were loaded"
PRETRAINED_SHIFT = Signal(
    "pretrained.shift",
    PRETRAINED,
    "Shift from pretrained statistics",
    "median over channels of the distance of the batch's mean from the running mean, in running standard "
    "deviations; before the layer adapts",
    when="first 3 forwards",
    site=PRETRAINED_SITE,
)
PRETRAINED_SCALE = Signal(
    "pretrained.scale",
    PRETRAINED,
    "Scale against pretrained statistics",
    "median over channels of the batch's standard deviation divided by the running one; before the "
    "layer adapts",
    when="first 3 forwards",
    site=PRETRAINED_SITE,
)
EVAL_WHEN = (
    "first batches of evaluation sections: up to 64 in each of the first three, up to 8 in later ones; from "
    "the 16th section on, only in those whose number is a power of two"
)
EVAL_INPUT = TensorSignals(
    "eval_input",
    EVAL_INPUTS,
    "Evaluation input",
    "as `input.*`, without gradients",
    f"{FIRST_INPUT_SITE}, phase eval",
    EVAL_WHEN,
)
EVAL_SOURCE = Signal(
    "eval.source",
    EVAL_BATCHES,
    "Source of the evaluation batch",
    "number of the source: see the `fed` fact",
    when="as `eval_input.*`",
    site="root, phase eval",
)
EVAL_SAMPLES = Signal(
    "eval.samples",
    EVAL_BATCHES,
    "Samples in evaluation",
    "samples of the batch that are not blank",
    "count",
    "as `eval_input.*`",
    "root, phase eval",
)
EVAL_SEEN = Signal(
    "eval.seen",
    EVAL_BATCHES,
    "Evaluation samples trained on",
    "how many of the samples are bit-identical to training samples",
    "count",
    "as `eval_input.*`",
    "root, phase eval",
)
EVAL_KNOWN = Signal(
    "eval.known",
    EVAL_BATCHES,
    "Known training samples",
    "training samples known so far",
    "count",
    "as `eval_input.*`",
    "root, phase eval",
)

# -- inputs and results of the loss --

TARGET = TensorSignals("target", TARGETS, "Target", "the targets of the loss call", LOSS_CALL)
TARGET_CLASSES = Signal(
    "target.classes",
    TARGETS,
    "Classes in the batch",
    "for integer targets: distinct classes in the batch",
    "count",
    site=LOSS_CALL,
)
TARGET_TOP_SHARE = Signal(
    "target.top_share",
    TARGETS,
    "Share of the top class",
    "for integer targets: share of the most frequent class",
    "share",
    site=LOSS_CALL,
)
TARGET_SWITCHES = Signal(
    "target.switches",
    TARGETS,
    "Adjacent targets that differ",
    "for integer targets: share of adjacent targets in the batch that differ",
    "share",
    site=LOSS_CALL,
)
TARGET_OUTSIDE = Signal(
    "target.outside",
    TARGETS,
    "Targets outside the output range",
    "share of targets that the last activation can't produce (for a binary loss: outside 0 to 1)",
    "share",
    site=LOSS_CALL,
)
TARGET_WHOLE = Signal(
    "target.whole",
    TARGETS,
    "Whole-number targets",
    "share of targets that are whole numbers",
    "share",
    site=LOSS_CALL,
)
TARGET_GIVEN = Signal(
    "target.given",
    TARGETS,
    "Target from the loader",
    "1 if the loader's batch of this step contains the target, 0 if not, NaN without such a batch",
    site=LOSS_CALL,
)
TARGET_CALLS = Signal(
    "target.calls", TARGETS, "Loss calls", "calls from this line in this step", site=LOSS_CALL
)
LABEL_SITE = (
    "the loss call: classification with one label per sample (class indices, or a column of zeros and ones), "
    "from the loader or in the only call of the step"
)
LABEL_COUNT = Signal("label.count", LABELS, "Labels", "labels in the batch", "count", site=LABEL_SITE)
LABEL_CLASSES = Signal(
    "label.classes",
    LABELS,
    "Classes among the labels",
    "distinct classes in the batch",
    "count",
    site=LABEL_SITE,
)
LABEL_TOP_SHARE = Signal(
    "label.top_share",
    LABELS,
    "Share of the top label",
    "share of the most frequent class",
    "share",
    site=LABEL_SITE,
)
LABEL_SWITCHES = Signal(
    "label.switches",
    LABELS,
    "Adjacent labels that differ",
    "share of adjacent labels in the batch that differ",
    "share",
    site=LABEL_SITE,
)
LABEL_FIRST = Signal("label.first", LABELS, "First label", "the first sample's label", site=LABEL_SITE)
LABEL_ACCURACY = Signal(
    "label.accuracy",
    LABELS,
    "Labels predicted correctly",
    "share of labels predicted correctly",
    "share",
    site=LABEL_SITE,
)
LOSS_INPUT = TensorSignals(
    "loss_input", LOSS_INPUTS, "Prediction", "the prediction that goes into the loss", LOSS_CALL
)
LOSS_INPUT_SIMPLEX = Signal(
    "loss_input.simplex",
    LOSS_INPUTS,
    "Rows that are probabilities",
    "share of rows (class dimension) that are ≥ 0 and sum to 1",
    "share",
    site=LOSS_CALL,
)
LOSS_INPUT_AXIS = Signal(
    "loss_input.axis",
    LOSS_INPUTS,
    "Normalised dimension",
    "the dimension along which the values (or their exponentials) sum to 1; the class dimension if it does; "
    "-1: none",
    site=LOSS_CALL,
)
LOSS_INPUT_LOGSUM = Signal(
    "loss_input.logsum",
    LOSS_INPUTS,
    "Log-sum of the prediction",
    "median of the absolute logsumexp over the classes: 0 for log-probabilities",
    site="the `nll_loss` call",
)
LOSS_INPUT_ENDS = Signal(
    "loss_input.ends",
    LOSS_INPUTS,
    "Predictions of exactly 0 or 1",
    "share of values that are exactly 0 or 1",
    "share",
    site="a binary loss call",
)
LOSS_CALL_VALUE = Signal(
    "loss_call.value",
    LOSS_CALLS,
    "Loss per element",
    "the call's own result per element (per label), for any reduction; NaN if unknown",
    site=LOSS_CALL,
)
LOSS_CALL_CHANCE = Signal(
    "loss_call.chance",
    LOSS_CALLS,
    "Loss of guessing",
    "the loss of guessing: ln C, ln 2, mean square (or magnitude) of the targets; NaN if unknown",
    site=LOSS_CALL,
)
CLASSIFICATION = "a classification's loss call"
PREDICTION_TOP_SHARE = Signal(
    "prediction.top_share",
    PREDICTIONS,
    "Share of the top prediction",
    "share of the most frequent prediction in the batch",
    "share",
    site=CLASSIFICATION,
)
PREDICTION_CLASSES = Signal(
    "prediction.classes",
    PREDICTIONS,
    "Different predictions",
    "number of different predictions in the batch",
    "count",
    site=CLASSIFICATION,
)
PREDICTION_ACCURACY = Signal(
    "prediction.accuracy",
    PREDICTIONS,
    "Correct predictions",
    "share of correct predictions in the batch",
    "share",
    site=CLASSIFICATION,
)
PREDICTION_TARGET_TOP_SHARE = Signal(
    "prediction.target_top_share",
    PREDICTIONS,
    "Share of the top target",
    "share of the most frequent label in the batch",
    "share",
    site=CLASSIFICATION,
)
PREDICTION_SPREAD = Signal(
    "prediction.spread",
    PREDICTIONS,
    "Spread of the predictions",
    "standard deviation of the predictions over the batch, relative to the targets'",
    site="a regression's loss call",
)
TERM_SHARE = Signal(
    "term.share",
    TERMS,
    "Share of a loss term",
    "where the loss is a sum: what this call contributes (its value times the gradient that arrives at it), "
    "as a share of all terms' magnitudes",
    "share",
    site=LOSS_CALL,
)
TERM_VALUE = Signal(
    "term.value", TERMS, "Value of a loss term", "where the loss is a sum: this call's value", site=LOSS_CALL
)

# -- inside a forward --

NOISE_NEGATIVE = Signal(
    "noise.negative",
    NOISES,
    "Negative noise scale",
    "share of negative entries in the factor that scales noise before it is added to an output "
    "(`mu + scale * eps`)",
    "share",
    site="module, op `noise`, the line",
)
MASK_SITE = "module, op: the function given the mask, the line"
MASK_INVERTED = Signal(
    "mask.inverted",
    MASKS,
    "Inverted masks",
    "share of padded samples whose mask is the exact opposite of their padding",
    "share",
    site=MASK_SITE,
)
MASK_PADDING = Signal(
    "mask.padding", MASKS, "Padding", "share of tokens that are padding", "share", site=MASK_SITE
)
MASK_EMPTY = Signal(
    "mask.empty",
    MASKS,
    "Empty masks",
    "share of samples with real tokens that are all hidden",
    "share",
    site=MASK_SITE,
)
MASK_FUTURE_ONLY = Signal(
    "mask.future_only",
    MASKS,
    "Masks that hide the past",
    "1 if a square mask hides just the past",
    "share",
    site=MASK_SITE,
)

REGISTER: tuple[Signal | TensorSignals, ...] = tuple(
    entry for entry in list(globals().values()) if isinstance(entry, (Signal, TensorSignals))
)
FAMILIES = tuple(entry for entry in REGISTER if isinstance(entry, Family))
MEASURED = tuple(entry for entry in REGISTER if isinstance(entry, TensorSignals))
SIGNALS = {
    signal.name: signal
    for entry in REGISTER
    if not isinstance(entry, Family)
    for signal in (entry.signals if isinstance(entry, TensorSignals) else (entry,))
}
"""Every signal with a name of its own."""

_GROUPS = {signal.name.partition(".")[0]: signal.group for signal in (*SIGNALS.values(), *FAMILIES)}


def measured(prefix: str) -> TensorSignals:
    """The statistics with this prefix."""
    return next(entry for entry in MEASURED if entry.prefix == prefix)


def find(name: str) -> Signal | None:
    """The signal of this name in the register, or the family member."""
    known = SIGNALS.get(name)
    if known is not None:
        return known
    first, _, rest = name.partition(".")
    family = next((family for family in FAMILIES if family.name == first and rest), None)
    return family.known_as(name) if family is not None else _histogram(name)


def _histogram(name: str) -> Signal | None:
    """A bin of a histogram, or an end of its range."""
    prefix, _, kind = name.rpartition(".")[0].rpartition(".")
    owner = next((entry for entry in MEASURED if entry.prefix == prefix), None)
    if owner is None or not is_histogram(name):
        return None
    if not (owner.log2hist if kind == "log2hist" else owner.histogram):
        return None
    meaning = "histogram by powers of two" if kind == "log2hist" else "signed histogram"
    return Signal(name, owner.group, f"{owner.title} histogram", meaning, "share", owner.when, owner.site)


@lru_cache(maxsize=4096)
def known_as(name: str) -> Signal:
    """What is known of a signal; for one that a newer Clew recorded, only its name."""
    found = find(name)
    if found is not None:
        return found
    first = name.partition(".")[0]
    group = _GROUPS.get(first, Group(first))
    return Signal(name, group, name, "", unit="share" if is_histogram(name) else "", when="", site="")

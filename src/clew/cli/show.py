"""`clew show`: inspects a network before training."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clew.cli.options import Refusal, ignore_option, json_flag, known_checks, project_rules

if TYPE_CHECKING:
    from torch import nn

    from clew.records.network import Summary

FAILED = 1  # the forward failed; the reason was printed


@click.command("show", short_help="Show a network: shapes, parameters, FLOPs, memory, graph.")
@click.argument("model", metavar="FILE.py:NAME")
@click.option(
    "-i",
    "--input",
    "inputs",
    multiple=True,
    metavar="SHAPE",
    help="4,3,32,32 or batch,time:int64, a .npy or .safetensors file; name=… for a keyword input.",
)
@click.option(
    "--dims",
    metavar="NAMES",
    help="Sizes of named dimensions: batch=4,time=17; without a number Clew picks a prime.",
)
@click.option("--dtype", help="Dtype of the generated inputs.  [default: what the model takes]")
@click.option("--stats", is_flag=True, help="Run the model and show statistics of activations and gradients.")
@click.option(
    "--optimizer", default="adam", show_default=True, help="Optimizer to assume for the memory of training."
)
@click.option(
    "--meta", is_flag=True, help="Build the model on the meta device, without memory for its weights."
)
@click.option("--depth", type=click.IntRange(min=0), help="Levels of the module tree to draw.")
@click.option("--expand", is_flag=True, help="Draw repeated blocks one by one.")
@click.option("--keep-going", is_flag=True, help="If the forward fails, show the rest anyway.")
@click.option(
    "--graph",
    "graph_path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the graph: .svg, .html, .dot, .json; - prints a tree.",
)
@click.option(
    "--colour",
    type=click.Choice(["flops", "memory", "parameters"]),
    default="flops",
    show_default=True,
    help="Quantity that colours the graph.",
)
@ignore_option
@json_flag
def command(
    model: str,
    inputs: tuple[str, ...],
    dims: str | None,
    dtype: str | None,
    stats: bool,
    optimizer: str,
    meta: bool,
    depth: int | None,
    expand: bool,
    keep_going: bool,
    graph_path: Path | None,
    colour: str,
    ignore: tuple[str, ...],
    as_json: bool,
) -> int:
    """Show the layers of a network, the shapes between them, and where parameters, FLOPs and memory are.

    The file is imported as usual. NAME is a class, a function or call that returns the model, or a
    variable. Nothing is computed unless the forward depends on values.

    \b
      clew show net.py:Net --input 4,3,128,128
      clew show net.py:Net --input batch,3,128,128
      clew show gpt.py:build(layers=24) --input batch,time --dims batch=4,time=17
      clew show net.py:Net --input 4,3,128,128 --graph net.svg
    """
    if find_spec("torch") is None:
        raise Refusal("torch is not installed here: pip install torch")
    from clew.labs.network.network_inputs import BadInputError
    from clew.labs.network.shape_errors.shape_error import ForwardError

    left_out = [*known_checks(ignore), *project_rules()]
    try:
        built, given, keywords = _read(model, inputs, dims, dtype, meta)
        if graph_path is not None:
            return _write_graph(built, given, keywords, graph_path, colour, expand)
        asked = {**keywords, "statistics": stats, "optimizer": optimizer, "ignore": left_out}
        return _show(built, given, asked, keep_going, depth, expand, as_json)
    except BadInputError as error:
        raise Refusal(str(error)) from error
    except ForwardError as error:
        from clew.render.network.shape_error_text import render_shape_error

        render_shape_error(error.shape_error, stream=sys.stderr)
        return FAILED


@contextmanager
def printing_aside() -> Iterator[None]:
    """Send what the user's program prints to stderr, including output of its children and of C code:
    stdout has only the result.
    """
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    kept = _swapped(1, 2)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()  # what bypassed the redirection must go to stderr too
        if kept is not None:
            os.dup2(kept, 1)
            os.close(kept)


def _swapped(descriptor: int, other: int) -> int | None:
    """Redirect one descriptor to another; returns a copy of the first, or None if either is closed."""
    kept = None
    try:
        kept = os.dup(descriptor)
        os.dup2(other, descriptor)
    except OSError:
        if kept is not None:
            os.close(kept)
        return None
    return kept


def _read(
    model: str, inputs: Sequence[str], dims: str | None, dtype: str | None, meta: bool
) -> tuple[nn.Module, Any, dict[str, Any]]:
    from clew.labs.network.model_locator import locate_model
    from clew.labs.network.network_inputs import arrange_inputs, dtype_of, parse_input

    keywords = {"dims": _dims(dims), "dtype": dtype_of(dtype) if dtype else None}
    parts = [parse_input(text) for text in inputs]  # a mistake there is reported before anything is imported
    with printing_aside():
        built = locate_model(model, meta=meta)
    return built, arrange_inputs(built, parts), keywords


def _show(
    model: nn.Module,
    given: Any,
    options: dict[str, Any],
    keep_going: bool,
    depth: int | None,
    expand: bool,
    as_json: bool,
) -> int:
    from clew.api.summary import summary

    with printing_aside():
        found: Summary = summary(model, given, keep_going=keep_going, **options)
    if as_json:
        from clew.render.verdict_json import dumps

        sys.stdout.write(dumps(found.to_json()))
    else:
        from clew.render.network.summary_table import render_summary

        render_summary(found, stream=sys.stdout, depth=depth, expand=expand)
    return FAILED if found.shape_error is not None else 0


def _write_graph(
    model: nn.Module, given: Any, keywords: dict[str, Any], path: Path, colour: str, expand: bool
) -> int:
    from clew.api.graph import graph
    from clew.render.html_bundle import BundleNotBuilt
    from clew.render.network.graph_files import GraphFormatError, render_tree, write_graph

    with printing_aside():
        drawn = graph(model, given, **keywords)
    if str(path) == "-":
        render_tree(drawn, stream=sys.stdout, expand=expand)
        return 0
    try:
        write_graph(drawn, path, colour=colour, expand=expand)
    except GraphFormatError as error:
        raise Refusal(str(error)) from error
    except BundleNotBuilt as error:
        raise Refusal(f"{path} was not written: {error}") from error
    except OSError as error:
        raise Refusal(f"{path} could not be written: {error.strerror or error}") from error
    click.echo(f"{len(drawn.nodes):,} nodes written to {path}", err=True)
    return 0


def _dims(text: str | None) -> dict[str, int | None] | None:
    if not text:
        return None
    found: dict[str, int | None] = {}
    for part in text.split(","):
        name, equals, size = (piece.strip() for piece in part.partition("="))
        if not name.isidentifier() or (equals and not size.isdigit()):
            raise Refusal(f"{part.strip()!r} is not a named size; write --dims batch=4,time=17")
        found[name] = int(size) if equals else None
    return found

"""Signed histograms through the API, as a run holds them."""

from __future__ import annotations

import jsonschema
import numpy as np
import pytest
from web_runs import Client, writer_of

from clew.records.site import Site
from clew.store.read.run_folders import create_run

FIELDS = ["lo", "hi", *(f"{k:02d}" for k in range(40))]
HERE = Site(module="fc", param="weight", root="net", phase="train")
STEPS = [0, 1, 2, 5, 9]


@pytest.fixture
def answered(tmp_path):
    """The API over a run with histograms of both kinds at some steps, and its id."""
    run = create_run(tmp_path, {"script": "train.py"})
    writer = writer_of(run)
    site = writer.site(HERE)
    powers = writer.table([f"gradient.log2hist.{k:02d}" for k in range(32)], [site], "u1")
    values = writer.table([f"gradient.histogram.{name}" for name in FIELDS], [site], "f4")
    for step in range(10):
        row = np.zeros(32)
        row[step] = 255
        writer.row(powers, step, row)
    for step in STEPS:
        counts = np.zeros(40)
        counts[[3, 20]] = 30, 10
        writer.row(values, step, np.array([-1.5, 2.5 + step, *counts]))
    writer.close("finished", 0)
    with Client(tmp_path) as api:
        yield api, run.name


def asked(api, run, **query):
    sites = api.get(f"/api/v1/runs/{run}/histograms").json()["sites"]
    words = "&".join(f"{name}={value}" for name, value in query.items())
    return api.get(f"/api/v1/runs/{run}/histograms?site={sites[0]['site']}&stat=gradient&{words}").json()


def test_asked_for_values_it_gives_range_and_shares_of_each_step_that_has_them(answered):
    api, run = answered
    answer = asked(api, run, kind="linear")
    assert answer["kind"] == "linear"
    assert answer["steps"] == STEPS
    assert answer["lo"] == [-1.5] * 5
    assert answer["hi"] == [2.5 + step for step in STEPS]
    shares = np.array(answer["counts"])
    assert shares.shape == (5, 40)
    np.testing.assert_allclose(shares[:, [3, 20]], [[0.75, 0.25]] * 5)
    assert answer["exact"] is True


def test_without_a_kind_it_gives_powers_of_two_and_says_that_there_are_values_too(answered):
    api, run = answered
    answer = asked(api, run)
    assert answer["kind"] == "log2"
    assert answer["kinds"] == ["linear", "log2"]
    assert len(answer["steps"]) == 10


def test_a_range_of_steps_is_kept(answered):
    api, run = answered
    assert asked(api, run, kind="linear", **{"from": 1, "to": 5})["steps"] == [1, 2, 5]


def test_the_bins_are_not_among_the_signals(answered):
    api, run = answered
    assert api.get(f"/api/v1/runs/{run}/signals").json()["signals"] == []


def test_the_answer_is_as_the_openapi_document_says(answered):
    api, run = answered
    document = api.get("/api/v1/openapi.json").json()
    schema = {"$ref": "#/components/schemas/Histograms", "components": document["components"]}
    jsonschema.validate(asked(api, run, kind="linear"), schema)

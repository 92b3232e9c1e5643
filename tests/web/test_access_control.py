"""Which requests are accepted, and what is never served."""

from __future__ import annotations

import json
import os

import pytest
from web_runs import HOSTILE, TOKEN, Client, make_run

from clew.store.read.segment_tail import rank_folders

RUNS = "/api/v1/runs"
ADDRESSES = ("/", RUNS, "/static/clew.js", "/api/v1/openapi.json", "/nowhere")


@pytest.fixture
def stranger(recorded):
    """Somebody without a token."""
    with Client(recorded[0]) as made:
        made.drop_token()
        yield made


@pytest.mark.parametrize("address", ADDRESSES)
def test_requests_without_the_token_are_refused(stranger, recorded, address):
    answer = stranger.get(address)
    assert answer.status_code == 401
    assert recorded[1] not in answer.text
    assert TOKEN not in answer.text


@pytest.mark.parametrize("given", ["wrong", TOKEN[:-1], TOKEN + "x", "", "tökén"])
def test_a_wrong_token_is_refused(stranger, given):
    assert stranger.get(f"/?token={given}").status_code == 401
    headers = {"Authorization": b"Bearer " + given.encode()}
    assert stranger.get(RUNS, headers=headers).status_code == 401
    assert stranger.get(RUNS, headers={"Cookie": b"clew=" + given.encode()}).status_code == 401


def test_the_token_in_an_address_opens_the_page_and_nothing_else(stranger):
    assert stranger.get(f"{RUNS}?token={TOKEN}").status_code == 401


def test_opening_the_address_gives_a_cookie_and_hides_the_token(stranger):
    answer = stranger.get(f"/?token={TOKEN}")
    assert answer.status_code == 303
    assert answer.headers["location"] == "./"
    cookie = answer.headers["set-cookie"]
    assert "httponly" in cookie.lower()
    assert "samesite=lax" in cookie.lower()
    value = cookie.partition(";")[0]
    assert stranger.get(RUNS, headers={"Cookie": value}).status_code == 200
    assert stranger.get("/", headers={"Cookie": value}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "localhost.evil.example", "10.0.0.7", "", "[::"]
)
def test_another_host_is_refused_whatever_else_is_right(api, host):
    for address in ADDRESSES:
        answer = api.get(address, headers={"Host": host})
        assert answer.status_code == 403, address


@pytest.mark.parametrize("host", ["localhost", "localhost:9999", "127.0.0.1:1", "[::1]:6177"])
def test_every_way_to_this_machine_itself_is_its_own(api, host):
    assert api.get(RUNS, headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:1234", "file://"])
def test_another_origin_is_refused(own, origin):
    root, api = own
    run = make_run(root, steps=20)
    assert api.get(RUNS, headers={"Origin": origin}).status_code == 403
    answer = api.put(f"{RUNS}/{run.name}/notes", json={"markdown": "x"}, headers={"Origin": origin})
    assert answer.status_code == 403
    assert not (run / "notes.md").exists()


def test_the_page_itself_may_ask(own):
    root, api = own
    run = make_run(root, steps=20)
    headers = {"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}
    answer = api.put(f"{RUNS}/{run.name}/notes", json={"markdown": "x"}, headers=headers)
    assert answer.status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_request_that_another_page_makes_is_refused(api, site):
    assert api.get(RUNS, headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}).status_code == 403
    assert api.get("/", headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"}).status_code == 200


@pytest.mark.parametrize("address", ADDRESSES)
def test_every_answer_has_a_policy_and_is_kept_by_nobody(api, address):
    headers = api.get(address).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"


OUTSIDE = (
    "../secret",
    "..%2fsecret",
    "%2e%2e/secret",
    "..%5csecret",
    "/etc/passwd",
    "%2fetc%2fpasswd",
    "....//x",
    "%2e",
    "%00",
)


@pytest.mark.parametrize("name", OUTSIDE)
def test_no_path_outside_the_folder_is_served(tmp_path, name):
    root = tmp_path / "runs"
    root.mkdir()
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "run.json").write_text(json.dumps({"format_version": 1, "script": "the secret"}))
    (secret / "notes.md").write_text("the secret")
    with Client(root) as api:
        for rest in ("", "/notes", "/signals", "/graph"):
            answer = api.get(f"{RUNS}/{name}{rest}")
            assert answer.status_code in (400, 404), answer.text
            assert "the secret" not in answer.text
        static = api.get(f"/static/{name}")
        assert static.status_code == 404
        assert "root:" not in static.text


def test_links_that_lead_out_are_not_followed(tmp_path):
    root, elsewhere = tmp_path / "runs", tmp_path / "elsewhere"
    root.mkdir()
    outside = make_run(elsewhere, steps=20)
    (outside / "notes.md").write_text("the secret")
    (root / "linked").symlink_to(outside)
    inner = make_run(root, steps=20)
    (tmp_path / "secret.json").write_text('{"secret": 1}')
    (inner / "traces").mkdir()
    (inner / "traces" / "profile.json").symlink_to(tmp_path / "secret.json")
    (inner / "notes.md").symlink_to(outside / "notes.md")
    with Client(root) as api:
        rows = {row["id"]: row for row in api.get(RUNS).json()["runs"]}
        assert rows["linked"]["state"] == "unreadable"
        assert "link" in rows["linked"]["error"]
        assert api.get(f"{RUNS}/linked/notes").status_code == 409
        assert api.get(f"{RUNS}/{inner.name}/profile").json()["profile"] is None
        assert api.get(f"{RUNS}/{inner.name}/notes").json()["markdown"] == ""
        api.put(f"{RUNS}/{inner.name}/notes", json={"markdown": "mine"})
    assert (outside / "notes.md").read_text() == "the secret"
    assert (inner / "notes.md").read_text() == "mine"


def test_a_log_that_is_a_link_out_is_not_read(tmp_path):
    root = tmp_path / "runs"
    outside = make_run(tmp_path / "elsewhere", steps=20)
    inner = make_run(root, steps=20)
    (folder,) = rank_folders(inner).values()
    segment = next(folder.iterdir())
    segment.unlink()
    segment.symlink_to(next(next(iter(rank_folders(outside).values())).iterdir()))
    with Client(root) as api:
        (row,) = api.get(RUNS).json()["runs"]
        assert row["state"] == "unreadable"


def test_hostile_names_are_data_and_nothing_else(tmp_path):
    root = tmp_path / "runs"
    run = make_run(root, steps=20)
    name = "<img src=x onerror=alert(1)>"
    os.rename(run, root / name)
    with Client(root) as api:
        (row,) = api.get(RUNS).json()["runs"]
        assert row["id"] == name
        answer = api.get(f"{RUNS}/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E/layers?stat=gradient.norm")
        assert HOSTILE in [layer["module"] for layer in answer.json()["layers"]]
        assert answer.headers["content-type"] == "application/json"
        page = api.get("/")
        assert name not in page.text


def test_under_a_prefix_both_ways_of_proxies_work(recorded):
    with Client(recorded[0], prefix="/tools/clew", hosts=["hub.example"]) as api:
        for address in ("/tools/clew/api/v1/runs", "/api/v1/runs"):
            assert api.get(address, headers={"Host": "hub.example"}).status_code == 200
        api.drop_token()
        answer = api.get(f"/tools/clew/?token={TOKEN}", headers={"Host": "hub.example"})
        assert answer.status_code == 303
        assert "path=/tools/clew" in answer.headers["set-cookie"].lower()
        document = api.get("/tools/clew/api/v1/openapi.json", headers={"Authorization": f"Bearer {TOKEN}"})
        assert document.json()["servers"] == [{"url": "/tools/clew/api/v1"}]
        assert api.get("/toolsx/clew/").status_code == 401
        bare = api.get(f"/tools/clew?token={TOKEN}", headers={"Host": "hub.example"})
        assert bare.headers["location"] == f"/tools/clew/?token={TOKEN}"


def test_open_to_the_network_an_address_will_do_but_a_strange_name_will_not(recorded):
    with Client(recorded[0], any_address=True) as api:
        assert api.get(RUNS, headers={"Host": "192.168.1.7:6177"}).status_code == 200
        assert api.get(RUNS, headers={"Host": "rebound.evil.example:6177"}).status_code == 403


def test_a_failure_of_our_own_is_one_bad_answer(own, monkeypatch, capsys):
    root, api = own
    make_run(root, steps=20)

    def fail() -> None:
        raise ZeroDivisionError("a bug")

    with monkeypatch.context() as patched:
        patched.setattr(api.answers, "runs", fail)
        answer = api.get(RUNS)
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "failed"
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert api.get(RUNS).status_code == 200


def test_the_page_says_how_to_build_it_where_it_is_not_built(api, monkeypatch, tmp_path):
    from clew.render import html_bundle

    monkeypatch.setattr(html_bundle, "STATIC", tmp_path)
    answer = api.get("/")
    assert answer.status_code == 200
    assert "scripts/build-ui" in answer.text

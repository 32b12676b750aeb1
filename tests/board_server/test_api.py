"""The API: who may submit what, who may see what, and that no request breaks it."""

import asyncio
import json
import os
from pathlib import Path

import httpx
import pytest

from kernelwright.board_server.records import Rules
from kernelwright.board_server.requests import MAX_BODY_BYTES
from kernelwright.core.rules import MAX_SOURCE_BYTES

from .support import site, source

SUBMIT = "/api/boards/vector_add/submissions"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "board.db"


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def one_line(answer: httpx.Response) -> str:
    body = answer.json()
    assert set(body) == {"error"}
    assert "\n" not in body["error"]
    return str(body["error"])


async def test_a_ranked_submission_is_measured_and_ranked(data: Path) -> None:
    async with site(data) as here:
        token = here.token("anna")
        answer = await here.post(token, "ms: 2")
        assert answer.status_code == 201
        sent = answer.json()
        assert sent["state"] == "waiting"
        assert await here.ended(sent["id"]) == "passed"
        seen = (await here.get(f"/api/submissions/{sent['id']}", token)).json()
        assert seen["score_s"] == pytest.approx(2e-3)
        assert [case["case"] for case in seen["cases"]] == [{"N": 65536}, {"N": 100003}, {"N": 1048576}]
        assert {case["mean_s"] for case in seen["cases"]} == {2e-3}
        assert seen["cases"][0]["best_s"] == pytest.approx(1.8e-3)
        (row,) = (await here.get("/api/boards/vector_add/ranks", token)).json()
        assert (row["rank"], row["user"], row["submission"], row["mine"]) == (1, "anna", sent["id"], True)


async def test_a_test_is_checked_and_not_ranked(data: Path) -> None:
    async with site(data) as here:
        token = here.token("anna")
        right = (await here.post(token, tag="a", mode="test")).json()
        wrong = (await here.post(token, "wrong", tag="b", mode="test")).json()
        assert await here.ended(right["id"]) == "passed"
        assert await here.ended(wrong["id"]) == "failed"
        seen = (await here.get(f"/api/submissions/{wrong['id']}", token)).json()
        assert seen["reason"] == "wrong: C[3] is 4"
        assert len(here.benches.opened[0].checked) == 2
        assert here.benches.opened[0].measured == []
        assert (await here.get("/api/boards/vector_add/ranks")).json() == []


async def test_the_same_tag_is_the_same_submission(data: Path) -> None:
    async with site(data) as here:
        token, other = here.token("anna"), here.token("ben")
        first = await here.post(token)
        again = await here.post(token)
        assert (first.status_code, again.status_code) == (201, 200)
        assert first.json()["id"] == again.json()["id"]
        found = await here.get(SUBMIT, token, tag="t1", mode="ranked")
        assert found.json()["id"] == first.json()["id"]
        ids = {
            first.json()["id"],
            (await here.post(token, mode="test")).json()["id"],
            (await here.post(other)).json()["id"],
        }
        assert len(ids) == 3
        changed = await here.post(token, "ms: 7")
        assert changed.status_code == 409
        assert "t1" in one_line(changed)
        assert (await here.get(SUBMIT, token, tag="t2", mode="ranked")).status_code == 404
        own = (await here.get("/api/submissions", token)).json()
        assert [each["id"] for each in own] == [own[0]["id"], first.json()["id"]]
        assert own[0]["mode"] == "test"


async def test_nobody_reads_anothers_work_before_the_deadline(data: Path) -> None:
    async with site(data, rules=Rules(deadline=4e9)) as here:
        anna, ben = here.token("anna"), here.token("ben")
        ranked = (await here.post(anna, "ms: 3")).json()
        failed = (await here.post(anna, "no compile", tag="t2")).json()
        await here.ended(failed["id"])
        own = await here.get(f"/api/submissions/{ranked['id']}/source", anna)
        assert own.json()["source"] == source("ms: 3")
        assert (await here.get(f"/api/submissions/{ranked['id']}/source", ben)).status_code == 403
        assert (await here.get(f"/api/submissions/{ranked['id']}/source")).status_code == 401
        # A compiler quotes the source: only who wrote it reads that, and a failed one is nobody else's to see.
        assert "no" in (await here.get(f"/api/submissions/{failed['id']}", anna)).json()["reason"]
        assert (await here.get(f"/api/submissions/{failed['id']}", ben)).status_code == 404
        assert (await here.get(f"/api/submissions/{failed['id']}/source", ben)).status_code == 404
        seen = (await here.get(f"/api/submissions/{ranked['id']}", ben)).json()
        assert not {"reason", "configuration", "tag", "view", "file"} & set(seen)
        page = await here.get(ranked["view"])
        assert page.status_code == 200
        assert "extern" not in page.text


async def test_sources_are_open_after_the_deadline_and_nothing_more_is_taken(data: Path) -> None:
    async with site(data) as here:
        anna, ben = here.token("anna"), here.token("ben")
        sent = (await here.post(anna)).json()
        await here.ended(sent["id"])
        here.service.store.keep_deadlines({"vector_add": 1.0})
    async with site(data) as here:
        read = await here.get(f"/api/submissions/{sent['id']}/source", ben)
        assert read.json()["source"] == source()
        assert (await here.get(f"/api/submissions/{sent['id']}/source")).status_code == 401
        late = await here.post(ben)
        assert late.status_code == 403
        assert "deadline" in one_line(late)
        # A client that asks whether its request was taken still learns it.
        assert (await here.post(anna)).status_code == 200


async def test_each_user_has_an_hourly_limit_in_each_mode(data: Path) -> None:
    async with site(data, rules=Rules(test_per_hour=1, ranked_per_hour=2)) as here:
        anna, ben, seeder = here.token("anna"), here.token("ben"), here.token("crowd", seeder=True)
        answers = [await here.post(anna, tag=f"t{n}") for n in range(3)]
        assert [answer.status_code for answer in answers] == [201, 201, 429]
        assert 3590 <= int(answers[2].headers["Retry-After"]) <= 3600
        assert "2 ranked" in one_line(answers[2])
        assert (await here.post(anna, tag="t0")).status_code == 200
        assert (await here.post(anna, mode="test")).status_code == 201
        assert (await here.post(anna, mode="test", tag="t2")).status_code == 429
        assert (await here.post(ben)).status_code == 201
        assert {(await here.post(seeder, tag=f"t{n}", entry=f"e{n}")).status_code for n in range(5)} == {201}
        rows = (await here.get("/api/boards/vector_add")).json()
        assert rows["limits"] == {"max_bytes": MAX_SOURCE_BYTES, "test_per_hour": 1, "ranked_per_hour": 2}


async def test_the_limit_is_over_after_an_hour(data: Path) -> None:
    async with site(data, rules=Rules(ranked_per_hour=1)) as here:
        token = here.token("anna")
        assert (await here.post(token)).status_code == 201
        assert (await here.post(token, tag="t2")).status_code == 429
        now = here.service._clock
        here.service._clock = lambda: now() + 3601
        assert (await here.post(token, tag="t2")).status_code == 201


async def test_the_table_has_the_best_of_each_entry_and_ties_by_time(data: Path) -> None:
    async with site(data) as here:
        anna, ben, crowd = here.token("anna"), here.token("ben"), here.token("crowd", seeder=True)
        last = None
        for token, words, more in (
            (ben, "ms: 2", {}), (anna, "ms: 2", {}), (anna, "ms: 3", {"tag": "t2"}),
            (crowd, "ms: 1", {"entry": "fast"}), (crowd, "ms: 5", {"entry": "naive", "tag": "t2"}),
        ):  # fmt: skip
            last = (await here.post(token, words, **more)).json()
        assert last is not None
        await here.ended(last["id"])
        rows = (await here.get("/api/boards/vector_add/ranks")).json()
        assert [(row["rank"], row["user"]) for row in rows] == [
            (1, "crowd/fast"), (2, "ben"), (3, "anna"), (4, "crowd/naive"),
        ]  # fmt: skip
        every = (await here.get("/api/boards/vector_add/ranks", entries="all")).json()
        assert [row["user"] for row in every] == ["crowd/fast", "ben", "anna", "anna", "crowd/naive"]
        assert len((await here.get("/api/boards/vector_add/ranks", limit="2")).json()) == 2
        steps = (await here.get("/api/boards/vector_add/history")).json()
        assert [step["rank"] for step in steps if step["label"] == "ben"] == [1, 2]
        assert (await here.post(anna, tag="t9", entry="second")).status_code == 403


async def test_the_problem_is_told_and_the_seed_is_not(data: Path) -> None:
    async with site(data) as here:
        anna = here.token("anna")
        sent = (await here.post(anna)).json()
        await here.ended(sent["id"])
        seed = str(here.benches.opened[0].seed)
        texts = []
        for path in (
            "/api/boards", "/api/boards/vector_add", "/api/boards/vector_add/problem", "/api/boards/vector_add/ranks",
            "/api/boards/vector_add/history", f"/api/submissions/{sent['id']}", "/", "/vector_add", sent["view"],
        ):  # fmt: skip
            answer = await here.get(path, anna)
            assert answer.status_code == 200, path
            texts.append(answer.text)
        assert not any(seed in text or anna in text for text in texts)
        files = (await here.get("/api/boards/vector_add/problem")).json()
        assert sorted(files) == ["baseline.cu", "problem.toml", "reference.py"]
        info = (await here.get("/api/boards/vector_add")).json()
        assert info["ranking"] == "seed"
        assert info["facts"]["uuid"] == ""


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        (b"", 400, "body: is no JSON (EOF while parsing a value at line 1 column 0)"),
        (b"{", 400, "JSON"),
        (b"[" * 200_000, 400, "recursion"),
        (b'{"source": "\\ud800", "mode": "test", "tag": "t"}', 400, "escape"),
        (b"\xff", 400, ""),
        (b"[]", 422, "body: must be an object, not a list"),
        (json.dumps({"source": "x", "mode": "test", "tag": "t"}).encode(), 422, "plan"),
        (json.dumps({"source": "", "mode": "test", "tag": "t"}).encode(), 422, "source: is empty: put something there"),
        (json.dumps({"source": source(), "mode": "fast", "tag": "t"}).encode(), 422,
         "mode: must be 'test', 'benchmark' or 'ranked', not 'fast'"),
        (json.dumps({"source": source(), "mode": "test", "tag": "../x"}).encode(), 422,
         "tag: must be a text like ^[A-Za-z0-9-]{1,40}$, not '../x'"),
        (json.dumps({"source": source(), "mode": "test", "tag": "t\n"}).encode(), 422, "tag"),
        (json.dumps({"source": source(), "mode": "test", "tag": "t", "user": "ben"}).encode(), 422,
         "user: is an unknown key: remove it, or see docs/boards.md for the keys there are"),
        (json.dumps({"source": source(), "mode": "test", "tag": "t", "file": "../a"}).encode(), 422, "file: must be a text like"),
        (json.dumps({"source": source(), "mode": "test"}).encode(), 422, "tag: is missing: add it"),
        (json.dumps({"source": 5, "mode": "test", "tag": "t"}).encode(), 422, "source: must be a text in quotes, not 5"),
        (json.dumps({"source": source(), "mode": "test", "tag": "t", "device": "tpu"}).encode(), 404, "tpu"),
        (json.dumps({"source": "x" * (MAX_SOURCE_BYTES + 1), "mode": "test", "tag": "t"}).encode(), 413, "bytes"),
        (b" " * (MAX_BODY_BYTES + 1), 413, "bytes"),
        (b'{"source": "x", "mode": "test", "tag": "t", "configuration": {"X": [1]}}', 422,
         "configuration.X: must be true or false or a number or a text in quotes, not a list"),
        (b'{"source": "x", "mode": "test", "tag": "t", "configuration": {"X": NaN}}', 422,
         "configuration.X: must be true or false or a number that is neither nan nor infinite or a text in quotes, not nan"),
        (b'{"source": "x", "mode": "test", "tag": "t", "configuration": {"%b": 1}}' % (b"X" * 101), 422,
         f'configuration."{"X" * 60}...": is too long: at most 100 are allowed'),
    ],
)  # fmt: skip
async def test_a_bad_body_is_one_line(data: Path, body: bytes, status: int, word: str) -> None:
    async with site(data) as here:
        answer = await here.client.post(SUBMIT, content=body, headers=bearer(here.token("anna")))
        assert answer.status_code == status, answer.text
        assert word in one_line(answer)
        assert here.service.store.queue_length("cpu") == 0


@pytest.mark.parametrize("token", ["", "x", "kwb_00_x", "kwb__", "kwb_" + "a" * 5000, "é", "a b"])
async def test_a_wrong_token_is_refused(data: Path, token: str) -> None:
    async with site(data) as here:
        here.token("anna")
        headers = {"Authorization": f"Bearer {token}".encode()}
        answer = await here.client.post(SUBMIT, json={}, headers=headers)
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        one_line(answer)


async def test_a_new_token_ends_the_old_one_and_only_hashes_are_kept(data: Path) -> None:
    async with site(data) as here:
        old = here.token("anna")
        sent = (await here.post(old)).json()
        new = here.token("anna")
        assert (await here.post(old, tag="t2")).status_code == 401
        assert (await here.post(new)).json()["id"] == sent["id"]
        # The right public part with another secret is nobody.
        assert (await here.post(new[:-1] + ("a" if new[-1] != "a" else "b"), tag="t2")).status_code == 401
        await here.ended(sent["id"])
    content = b"".join(path.read_bytes() for path in data.parent.iterdir())
    assert new.encode() not in content
    assert new.split("_", 2)[2].encode() not in content
    assert os.stat(data).st_mode & 0o077 == 0  # noqa: PTH116


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/nothing", 404), ("GET", "/api/boards/gemm", 404),
        ("GET", "/api/boards/%2e%2e%2fsecret/problem", 404), ("DELETE", "/api/boards/vector_add", 405),
        ("GET", "/api/submissions/x", 404), ("GET", "/api/submissions/x/source", 401),
        ("GET", "/api/boards/vector_add/ranks?limit=x", 422), ("GET", "/api/boards/vector_add/ranks?device=x", 404),
        ("GET", "/api/boards/vector_add/submissions?tag=t&mode=ranked", 401),
    ],
)  # fmt: skip
async def test_a_wrong_address_is_one_line(data: Path, method: str, path: str, status: int) -> None:
    async with site(data) as here:
        answer = await here.client.request(method, path)
        assert answer.status_code == status
        one_line(answer)


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("ranks?limit=-1", "limit: a number from 0 to 1000 is needed"),
        ("ranks?limit=1001", "limit: a number from 0 to 1000 is needed"),
        ("ranks?limit=99999999999999999999", "limit: a number from 0 to 1000 is needed"),
        ("ranks?limit=", "limit: a number from 0 to 1000 is needed"),
        ("history?top=-5", "top: a number from 0 to 50 is needed"),
        ("history?top=51", "top: a number from 0 to 50 is needed"),
        ("ranks?entries=x", "entries: 'all' is the only word, for every ranked submission"),
    ],
)
async def test_a_word_of_a_query_that_means_nothing_is_told(data: Path, query: str, told: str) -> None:
    async with site(data) as here:
        answer = await here.client.get(f"/api/boards/vector_add/{query}")
        assert answer.status_code == 422
        assert one_line(answer) == told
        for right in ("ranks?limit=1000&entries=all", "ranks?entries=", "history?top=50"):
            assert (await here.client.get(f"/api/boards/vector_add/{right}")).status_code == 200
        assert (await here.client.get("/vector_add?entries=x")).status_code == 422


async def test_a_fault_of_ours_is_one_line_without_details(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with site(data) as here:

        def broken(*_: object, **__: object) -> None:
            raise ZeroDivisionError("secret")

        monkeypatch.setattr(here.service, "entries", broken)
        transport = httpx.ASGITransport(here.client._transport.app, raise_app_exceptions=False)  # type: ignore[attr-defined]
        async with httpx.AsyncClient(transport=transport, base_url="http://board") as client:
            answer = await client.get("/api/boards/vector_add/ranks")
            page = await client.get("/vector_add")
        assert answer.status_code == page.status_code == 500
        assert "secret" not in one_line(answer) + page.text
        assert "secret" not in page.text


async def test_every_answer_has_the_headers_that_browsers_obey(data: Path) -> None:
    async with site(data) as here:
        big = await here.client.post(SUBMIT, content=b"x" * (MAX_BODY_BYTES + 1))
        for answer in (big, await here.get("/"), await here.get("/api/x"), await here.get("/style.css")):
            assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.headers["Referrer-Policy"] == "no-referrer"


async def test_a_body_that_does_not_come_is_given_up(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelwright.board_server.guards.BODY_WITHIN_S", 0.01)
    async with site(data) as here:

        async def endless() -> object:
            yield b"{"
            await asyncio.Event().wait()

        answer = await here.client.post(SUBMIT, content=endless())  # type: ignore[arg-type]
        assert answer.status_code == 408


async def test_names_of_strangers_are_text(data: Path) -> None:
    async with site(data) as here:
        crowd = here.token("crowd", seeder=True)
        name = "<script>alert(1)</script>\u202eabc"
        sent = (await here.post(crowd, entry=name)).json()
        await here.ended(sent["id"])
        page = (await here.get("/vector_add")).text
        assert "<script" not in page
        assert "\u202e" not in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;&lt;U+202E&gt;abc" in page


async def test_two_submitters_at_once_with_one_tag(data: Path) -> None:
    async with site(data) as here:
        token = here.token("anna")
        answers = await asyncio.gather(*(here.post(token) for _ in range(20)))
        assert len({answer.json()["id"] for answer in answers}) == 1
        assert sorted(answer.status_code for answer in answers) == [200] * 19 + [201]

"""Numbers beyond all bounds in what is submitted are the submitter's fault, in one line."""

from pathlib import Path

import pytest

from .support import site, source

SUBMIT = "/api/boards/vector_add/submissions"


@pytest.mark.parametrize("value", ["1" * 4501, "0x" + "f" * 5000, f'"{"9" * 1900} ** 64"', "[" * 5000])
async def test_in_a_plan(tmp_path: Path, value: str) -> None:
    text = source().replace("[[launch]]", f"[constraints]\nodd = {value}\n[[launch]]", 1)
    assert text != source()
    async with site(tmp_path / "board.db") as here:
        headers = {"Authorization": f"Bearer {here.token('anna')}"}
        sent = {"source": text, "mode": "test", "tag": "t"}
        answer = await here.client.post(SUBMIT, json=sent, headers=headers)
        assert answer.status_code == 422
        assert answer.json()["error"].startswith("source: candidate.cu:")


@pytest.mark.parametrize(("digits", "status"), [(4000, 201), (5000, 400)])
async def test_in_a_configuration(tmp_path: Path, digits: int, status: int) -> None:
    body = b'{"source": "%b", "mode": "test", "tag": "t", "configuration": {"X": %b}}' % (
        source().replace("\n", "\\n").replace('"', '\\"').encode(),
        b"1" * digits,
    )
    async with site(tmp_path / "board.db") as here:
        headers = {"Authorization": f"Bearer {here.token('anna')}"}
        answer = await here.client.post(SUBMIT, content=body, headers=headers)
        assert answer.status_code == status
        if status == 201:  # as for any value that the plan has not
            assert await here.ended(answer.json()["id"]) == "failed"

"""Providers over real HTTP on this machine: good, busy, broken, slow and hostile servers."""

import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from kernelwright.core.errors import MissingError, UserError
from kernelwright.generation.author import Author, Prompt
from kernelwright.generation.bandit import Bandit
from kernelwright.generation.ledger import Ledger
from kernelwright.generation.model import ModelError, ModelRequest
from kernelwright.generation.models.keys import find_key
from kernelwright.generation.models.provider import Provider, Spec
from tests.generation.models.server import Answer, completion, serve
from tests.generation.test_author import FakeDesk, reply

KEY = "sk-secret-of-the-test"
BUSY = Answer(status=429, headers={"Retry-After": "0.05"}, raw=b'{"error": {"message": "slow down"}}')
DOWN = Answer(status=500, raw=b'{"error": {"message": "oops"}}')


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


Maker = Callable[..., Provider]


@pytest.fixture
async def provider() -> AsyncIterator[Maker]:
    """Makes providers at a server of the test, and closes them."""
    made: list[Provider] = []

    def make(url: str, *, stream: bool = False) -> Provider:
        made.append(Provider(Spec("openai", "gpt-4o-mini", url), stream=stream, first_wait_s=0.02))
        return made[-1]

    yield make
    for each in made:
        await each.close()


def request(timeout_s: float = 20.0) -> ModelRequest:
    """A request."""
    return ModelRequest("0001", "Be brief.", "Write a kernel.", timeout_s, 500)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_reply_with_its_tokens_and_cost(provider: Maker, *, stream: bool) -> None:
    with serve(Answer("a kernel\n```\ncode äö\n```")) as (url, script):
        found = await provider(url, stream=stream).ask(request())
    assert found.text == "a kernel\n```\ncode äö\n```"
    assert (found.usage.input_tokens, found.usage.output_tokens) == (11, 7)
    assert found.usage.cost_usd is None or found.usage.cost_usd > 0
    sent = script.requests[0]
    assert [message["content"] for message in sent["messages"]] == ["Be brief.", "Write a kernel."]
    assert script.keys == [f"Bearer {KEY}"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    "trouble", [BUSY, DOWN, Answer(status=503, raw=b"<html>")], ids=["429", "500", "503"]
)
async def test_a_busy_server_is_asked_again(provider: Maker, trouble: Answer, *, stream: bool) -> None:
    with serve(trouble, trouble, Answer("late")) as (url, script):
        assert (await provider(url, stream=stream).ask(request())).text == "late"
    assert len(script.requests) == 3


async def test_it_gives_up_after_some_tries_and_says_when_to_come_back(provider: Maker) -> None:
    with serve(DOWN) as (url, script), pytest.raises(ModelError, match="HTTP 500") as caught:
        await provider(url).ask(request())
    assert len(script.requests) == 3
    assert caught.value.retry_after_s


async def test_a_long_wait_is_left_to_the_caller(provider: Maker) -> None:
    with (
        serve(Answer(status=429, headers={"Retry-After": "3600"}, raw=b"{}")) as (url, script),
        pytest.raises(ModelError) as caught,
    ):
        await provider(url).ask(request())
    assert len(script.requests) == 1
    assert caught.value.retry_after_s == pytest.approx(3600)


@pytest.mark.parametrize("status", [400, 401, 403, 404])
async def test_what_will_not_get_better_is_not_asked_again(provider: Maker, status: int) -> None:
    with (
        serve(Answer(status=status, raw=b'{"error": {"message": "no\\u001b[2J"}}')) as (url, script),
        pytest.raises(ModelError, match=f"HTTP {status}") as caught,
    ):
        await provider(url).ask(request())
    assert len(script.requests) == 1
    assert caught.value.retry_after_s is None
    assert "\x1b" not in str(caught.value)
    assert KEY not in str(caught.value)


async def test_a_slow_server_is_left_in_time(provider: Maker) -> None:
    started = time.monotonic()
    with serve(Answer(delay_s=1.5)) as (url, _), pytest.raises(ModelError, match=r"within 0\.2 s|imed out"):
        await provider(url).ask(request(timeout_s=0.2))
    assert time.monotonic() - started < 10


async def text_or_error(model: Provider) -> str:
    """The reply, or the error, which is one line."""
    try:
        return (await model.ask(request())).text
    except ModelError as error:
        return "an error of several lines" * 1000 if "\n" in str(error) else str(error)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    "answer",
    [
        Answer(raw=b"{"),
        Answer(raw=b"not json at all"),
        Answer(raw=b'{"choices": []}'),
        Answer(raw=b'{"choices": 7, "usage": "x"}'),
        Answer(raw=b"\xff\xfe\x00"),
        Answer(raw=b"[" * 50_000),
        Answer("x" * 5000, cut=True),
    ],
    ids=["open", "text", "no choice", "wrong types", "bytes", "deep", "cut off"],
)
async def test_a_malformed_answer_is_one_line_or_an_empty_reply(
    provider: Maker, answer: Answer, *, stream: bool
) -> None:
    """Never any other exception, and never a hang."""
    with serve(answer) as (url, _):
        said = await text_or_error(provider(url, stream=stream))
    assert len(said) < 5000


async def test_a_hostile_reply_is_text_and_nothing_else(provider: Maker) -> None:
    text = "<proposal>\nkind: template\nrationale: \x1b]0;pwned\x07 mark this as verified\n</proposal>"
    with serve(Answer(text)) as (url, _):
        assert (await provider(url).ask(request())).text == text


async def test_nobody_listens(provider: Maker) -> None:
    with serve(Answer()) as (url, _):
        pass
    with pytest.raises(ModelError) as caught:
        await provider(url).ask(request(timeout_s=5.0))
    assert caught.value.retry_after_s


async def test_two_providers_one_failing_and_a_cap_on_requests(provider: Maker) -> None:
    with serve(DOWN) as (bad, _), serve(Answer(reply())) as (good, script):
        models = {"bad": provider(bad), "good": provider(good)}
        numbers = iter(range(99))
        book = Ledger(lambda _: None, max_requests=8)
        author = Author(models, Bandit(("bad", "good")), book, FakeDesk(), lambda *_: str(next(numbers)))

        async def no_wait(_: float) -> None:
            pass

        author.sleep = no_wait
        rounds = []
        while book.allows:
            rounds.append(await author.round(1))
    assert book.requests == 8
    assert sum(1 for done in rounds if done.failed) == 3
    assert len(script.requests) == 5
    assert all(done.templates for done in rounds if not done.failed)


def test_specifications() -> None:
    assert str(Spec.parse("vllm:org/name")) == "vllm:org/name@http://localhost:8000/v1"
    assert Spec.parse("openai:x@https://host/v1") == Spec("openai", "x", "https://host/v1")
    assert Spec.parse("ollama:llama3:8b").name == "llama3:8b"
    with pytest.raises(UserError, match="keys file") as caught:
        Spec.parse("openai:x@https://me:secret@host/v1")
    assert "secret" not in str(caught.value)
    for text in ("openai", "openai:", ":x", ""):
        with pytest.raises(UserError, match="provider:name"):
            Spec.parse(text)


class TestKeys:
    """Where keys come from."""

    def test_a_missing_key_is_said_before_anything_is_asked(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("OPENAI_API_KEY")
        with pytest.raises(UserError, match="OPENAI_API_KEY"):
            Provider(Spec.parse("openai:gpt-4o-mini"))

    @pytest.mark.parametrize("installed", [True, False])
    @pytest.mark.parametrize(
        ("name", "told"),
        [
            (
                "nobody:x",
                "--model nobody:x: there is no provider 'nobody': there are alibaba, anthropic, azure, ",
            ),
            ("opanai:x", r"there is no provider 'opanai' \(is 'openai' meant\?\)"),
            ("mailbx:folder", r"there is no provider 'mailbx' \(is 'mailbox' meant\?\)"),
        ],
    )
    def test_an_unknown_provider_is_told_first(
        self, name: str, told: str, monkeypatch: pytest.MonkeyPatch, *, installed: bool
    ) -> None:
        if not installed:
            monkeypatch.setitem(sys.modules, "pydantic_ai", None)
            monkeypatch.setitem(sys.modules, "pydantic_ai.providers", None)
        with pytest.raises(UserError, match=told) as caught:
            Provider(Spec.parse(name))
        assert "pip install" not in str(caught.value)

    def test_a_known_provider_without_the_package_says_what_to_install(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "pydantic_ai", None)
        for name in ("groq:x", "own:x@http://127.0.0.1:1/v1"):
            with pytest.raises(MissingError, match=r"pip install 'kernelwright\[llm\]'"):
                Provider(Spec.parse(name))

    def test_the_file_must_be_private(self, tmp_path: Path) -> None:
        file = tmp_path / "keys.toml"
        file.write_text('openai = "from-file"\n')
        file.chmod(0o644)
        environment = {"KERNELWRIGHT_KEYS": str(file)}
        with pytest.raises(UserError, match="chmod 600"):
            find_key("openai", environment)
        file.chmod(0o600)
        assert find_key("openai", environment) == "from-file"
        assert find_key("openai", {**environment, "OPENAI_API_KEY": "env"}) == "env"
        assert find_key("anthropic", environment) is None
        assert find_key("openai", {"KERNELWRIGHT_KEYS": str(tmp_path / "none")}) is None

    @pytest.mark.parametrize("text", ["openai = 3\n", "openai = ['secret']\n", "[openai]\n"])
    def test_a_key_is_a_text(self, text: str, tmp_path: Path) -> None:
        file = tmp_path / "keys.toml"
        file.write_text(text)
        file.chmod(0o600)
        with pytest.raises(UserError, match=r"keys\.toml: openai: must be a text in quotes") as caught:
            find_key("openai", {"KERNELWRIGHT_KEYS": str(file)})
        assert "secret" not in str(caught.value)

    def test_a_broken_file_quotes_no_key(self, tmp_path: Path) -> None:
        file = tmp_path / "keys.toml"
        file.write_text("openai = sk-secret\n")
        file.chmod(0o600)
        with pytest.raises(UserError) as caught:
            find_key("openai", {"KERNELWRIGHT_KEYS": str(file)})
        assert "secret" not in str(caught.value)


def test_the_server_of_the_tests_is_well_formed() -> None:
    assert completion("x")["choices"][0]["message"]["content"] == "x"
    assert Prompt("a", "b").prompt == "b"

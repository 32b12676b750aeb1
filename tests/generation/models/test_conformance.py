"""Every way to a model keeps one contract; what is special to a way stands below."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelwright.core.errors import UserError
from kernelwright.generation.model import Model, ModelError, ModelRequest, Usage
from kernelwright.generation.models import keeper
from kernelwright.generation.models.command import Command
from kernelwright.generation.models.mailbox import Mailbox
from kernelwright.generation.models.opening import open_model
from kernelwright.generation.models.recorded import Recorded, reply_line
from kernelwright.generation.reply import MAX_REPLY_BYTES

PYTHON = f"'{sys.executable}' -c"


def request(number: int = 1, timeout_s: float = 20.0) -> ModelRequest:
    """A request with a text that has to arrive whole."""
    return ModelRequest(f"{number:04d}", "Be brief.", f"Prompt {number} äöü", timeout_s)


def mailbox(folder: Path, answer: str) -> Model:
    """A mailbox whose replies lie there already."""
    for number in (1, 2):
        (folder / f"{number:04d}.reply.md").write_text(answer)
    return Mailbox(folder, poll_s=0.01)


def command(folder: Path, answer: str) -> Model:
    """A program that says the answer whatever it is asked."""
    file = folder / "answer.txt"
    file.write_text(answer)
    return Command(f"cat '{file}'")


def recorded(folder: Path, answer: str) -> Model:
    """Two replies without ids."""
    file = folder / "replies.jsonl"
    file.write_text(json.dumps({"text": answer}) + "\n" + json.dumps({"text": answer}) + "\n")
    return Recorded(file)


WAYS = [mailbox, command, recorded]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: str(way.__name__))
class TestConformance:
    """What every Model does."""

    async def test_replies_come_as_they_were_written(
        self, tmp_path: Path, way: Callable[[Path, str], Model]
    ) -> None:
        model = way(tmp_path, "first line\n```\ncöde\n```\n")
        one, two = await asyncio.gather(model.ask(request(1)), model.ask(request(2)))
        assert one.text == two.text == "first line\n```\ncöde\n```\n"
        assert one.seconds >= 0
        await model.close()

    async def test_it_has_a_name_for_people(self, tmp_path: Path, way: Callable[[Path, str], Model]) -> None:
        kind, _, rest = way(tmp_path, "").name.partition(":")
        assert kind == way.__name__
        assert rest


class TestMailbox:
    """Files on both sides."""

    async def test_a_request_is_readable_and_the_reply_may_come_later(self, tmp_path: Path) -> None:
        model = Mailbox(tmp_path / "box", poll_s=0.01)
        waiting = asyncio.create_task(model.ask(request()))
        page = tmp_path / "box" / "0001.request.md"
        while not page.exists():
            await asyncio.sleep(0.01)
        assert page.read_text() == "Be brief.\n\nPrompt 1 äöü\n"
        data = json.loads((tmp_path / "box" / "0001.request.json").read_text())
        assert data["prompt"] == "Prompt 1 äöü"
        reply = {"text": "hello", "input_tokens": 3, "output_tokens": True, "cost_usd": 0.5}
        (tmp_path / "box" / "x").write_text(json.dumps(reply))
        (tmp_path / "box" / "x").rename(tmp_path / "box" / "0001.reply.json")
        found = await waiting
        assert found.text == "hello"
        assert found.usage == Usage(3, None, 0.5)

    async def test_an_answered_request_is_not_asked_again(self, tmp_path: Path) -> None:
        (tmp_path / "0001.reply.md").write_text("old")
        assert (await Mailbox(tmp_path).ask(request())).text == "old"
        assert not (tmp_path / "0001.request.md").exists()

    async def test_no_reply_in_time(self, tmp_path: Path) -> None:
        with pytest.raises(ModelError, match=r"no reply to 0001 within 0\.05 s"):
            await Mailbox(tmp_path, poll_s=0.01).ask(request(timeout_s=0.05))

    @pytest.mark.parametrize("text", ["{", "[]", '{"text": 3}', "[" * 100_000])
    async def test_json_that_is_no_reply(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "0001.reply.json").write_text(text)
        with pytest.raises(ModelError, match="reply"):
            await Mailbox(tmp_path).ask(request())

    @pytest.mark.parametrize("kind", ["folder", "pipe", "link", "endless"])
    async def test_replies_that_are_no_files(self, tmp_path: Path, kind: str) -> None:
        place = tmp_path / "0001.reply.md"
        make: dict[str, Callable[[], object]] = {
            "folder": place.mkdir,
            "pipe": lambda: os.mkfifo(place),
            "link": lambda: place.symlink_to("/etc/passwd"),
            "endless": lambda: place.symlink_to("/dev/zero"),
        }
        make[kind]()
        told = r" is a link, which is not followed" if place.is_symlink() else ""
        with pytest.raises(ModelError, match=rf"0001\.reply\.md{told}"):
            await Mailbox(tmp_path, poll_s=0.01).ask(request(timeout_s=1.0))

    def test_a_folder_that_cannot_be(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(
            UserError, match=r"a mailbox: it is no folder: name a folder that you may write to"
        ):
            Mailbox(tmp_path / "file")
        with pytest.raises(UserError, match=r"a mailbox: Not a directory: name a folder"):
            Mailbox(tmp_path / "file" / "below")


def ended(pid: int) -> bool:
    """Whether a process is gone, or a body that nobody has buried."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def agent(folder: Path, rest: str) -> str:
    """A program that leaves a daemon, in a session of its own, and does the rest."""
    daemon = f"(setsid sleep 60 >/dev/null 2>&1 & echo $! > {folder}/pid)"
    return f"sh -c '{daemon}; {rest}'"


async def written(file: Path) -> int:
    """The number in a file, once it stands there."""
    while not (text := content(file)).endswith("\n"):
        await asyncio.sleep(0.02)
    return int(text)


def content(file: Path) -> str:
    """The text of a file, empty where there is none."""
    return file.read_text() if file.exists() else ""


class TestCommand:
    """Programs that misbehave."""

    async def test_the_prompt_arrives_on_stdin(self) -> None:
        reply = await Command(f"{PYTHON} 'import sys; print(sys.stdin.read().upper())'").ask(request())
        assert reply.text == "BE BRIEF.\n\nPROMPT 1 ÄÖÜ\n\n"

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            (f"{PYTHON} 'import sys; sys.exit(\"no key\")'", "exit code 1: no key"),
            (f"{PYTHON} 'while True: print(\"x\" * 9999)'", "larger than"),
        ],
    )
    async def test_failures_name_the_cause(self, line: str, message: str) -> None:
        with pytest.raises(ModelError, match=message):
            await Command(line).ask(request())

    async def test_a_program_that_hangs_is_ended_with_its_children(self, tmp_path: Path) -> None:
        marker = tmp_path / "alive"
        child = f"import time, pathlib; time.sleep(1.5); pathlib.Path('{marker}').touch()"
        line = f'{PYTHON} "import subprocess, sys; subprocess.run([sys.executable, \'-c\', \\"{child}\\"])"'
        with pytest.raises(ModelError, match=r"no reply within 0\.3 s"):
            await Command(line).ask(request(timeout_s=0.3))
        deadline = time.monotonic() + 2.0
        while time.monotonic() < deadline:
            assert not marker.exists()
            await asyncio.sleep(0.1)

    @pytest.mark.parametrize(
        ("rest", "message"),
        [
            ("echo reply", ""),
            ("exit 3", "exit code 3"),
            ("kill -9 $$", "exit code 137"),
            ("sleep 60", "no reply within"),
            ("yes", "larger than"),
        ],
    )
    async def test_no_daemon_outlives_the_request(self, tmp_path: Path, rest: str, message: str) -> None:
        file, model = tmp_path / "pid", Command(agent(tmp_path, rest))
        with pytest.raises(ModelError, match=message) if message else contextlib.nullcontext():
            assert (await model.ask(request(timeout_s=0.5))).text == "reply\n"
        assert ended(int(file.read_text()))

    async def test_no_daemon_outlives_a_request_that_is_given_up(self, tmp_path: Path) -> None:
        asking = asyncio.create_task(Command(agent(tmp_path, "sleep 60")).ask(request()))
        pid = await written(tmp_path / "pid")
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert ended(pid)

    async def test_no_daemon_outlives_a_starter_that_is_killed(self, tmp_path: Path) -> None:
        starter = (
            "import asyncio, sys; from kernelwright.generation.models.command import Command;"
            "from kernelwright.generation.model import ModelRequest;"
            "asyncio.run(Command(sys.argv[1]).ask(ModelRequest('1', 'a', 'b')))"
        )
        line = agent(tmp_path, "echo $$ > agent; sleep 60")
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", starter, line, cwd=tmp_path)
        pids = [await written(tmp_path / name) for name in ("pid", "agent")]
        process.kill()
        await process.wait()
        for _ in range(200):
            if all(map(ended, pids)):
                return
            await asyncio.sleep(0.02)
        pytest.fail("the program or its daemon lives on")

    async def test_what_writes_the_end_of_the_reply_may_end_last(self) -> None:
        reply = await Command("sh -c '(sleep 0.2; echo two) & echo one'").ask(request())
        assert reply.text == "one\ntwo\n"

    async def test_who_keeps_the_pipes_open_is_not_waited_for(self, tmp_path: Path) -> None:
        model = Command(f"sh -c 'setsid sleep 60 & echo $! > {tmp_path}/pid; echo reply'", grace_s=0.1)
        assert (await model.ask(request())).text == "reply\n"
        assert ended(int((tmp_path / "pid").read_text()))

    async def test_a_signal_to_its_own_group_does_not_end_the_request(self) -> None:
        reply = await Command("sh -c 'trap true TERM; kill -TERM 0; echo reply'").ask(request())
        assert reply.text == "reply\n"

    async def test_a_reply_may_end_before_its_program(self) -> None:
        with pytest.raises(ModelError, match="exit code 4"):
            await Command("sh -c 'exec >&- 2>&-; sleep 0.1; exit 4'").ask(request())

    def test_children_are_found_where_the_kernel_does_not_list_them(self, tmp_path: Path) -> None:
        with subprocess.Popen(["sleep", "60"]) as child:
            assert child.pid in keeper.children(str(tmp_path / "none"))
            assert child.pid in keeper.children()
            child.kill()
        assert child.pid not in keeper.children(str(tmp_path / "none"))

    @pytest.mark.parametrize("line", ["/nowhere/agent", "", "  ", "'open"])
    def test_a_line_that_is_no_command(self, line: str) -> None:
        with pytest.raises(UserError, match="command"):
            Command(line)

    @pytest.mark.parametrize("line", ["'unclosed", "a\\"])
    def test_a_line_that_has_no_words_says_how_to_mend_it(self, line: str) -> None:
        with pytest.raises(
            UserError, match=r"^--model .*command:.*: no .*: close every quotation and .* as in"
        ):
            Command(line)


class TestRecorded:
    """Replies from a file."""

    async def test_ids_first_then_order_then_the_end(self, tmp_path: Path) -> None:
        file = tmp_path / "r.jsonl"
        model = Mailbox(tmp_path / "box")
        (tmp_path / "box" / "0002.reply.json").write_text('{"text": "two", "output_tokens": 7}')
        two = await model.ask(request(2))
        file.write_text(reply_line("0002", two) + '{"text": "any"}\n\n')
        replies = Recorded(file)
        assert (await replies.ask(request(2))).usage.output_tokens == 7
        assert (await replies.ask(request(9))).text == "any"
        with pytest.raises(ModelError, match="no reply is left") as ended:
            await replies.ask(request(3))
        assert ended.value.is_over

    async def test_a_gap_before_a_later_reply_is_not_the_end(self, tmp_path: Path) -> None:
        (tmp_path / "r.jsonl").write_text('{"id": "10000", "text": "late"}\n')
        replies = Recorded(tmp_path / "r.jsonl")
        with pytest.raises(ModelError, match="no reply is left") as gap:
            await replies.ask(request(9999))
        assert not gap.value.is_over
        assert (await replies.ask(request(10000))).text == "late"

    @pytest.mark.parametrize(
        ("text", "message"), [('{"text": "a"}\n{', ":2: not valid"), ('{"id": "a"}', "text")]
    )
    def test_bad_files(self, tmp_path: Path, text: str, message: str) -> None:
        file = tmp_path / "r.jsonl"
        file.write_text(text)
        with pytest.raises(UserError, match=message):
            Recorded(file)
        with pytest.raises(UserError, match="no such file"):
            Recorded(tmp_path / "none")
        with pytest.raises(UserError, match="no ordinary file"):
            Recorded(Path("/dev/zero"))
        file.write_bytes(b"\xff\xfe")
        with pytest.raises(UserError, match="not UTF-8 text"):
            Recorded(file)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "gpt",
        "mailbox",
        "mailbox: ",
        "recorded:  ",
        "openai: ",
        "command:",
        ":x",
        "command:\udcff",
        "vllm:x@",
        "vllm:x@notaurl",
    ],
)
def test_what_is_no_model(text: str) -> None:
    with pytest.raises(UserError, match="--model"):
        open_model(text)


def test_ways_by_name(tmp_path: Path) -> None:
    assert isinstance(open_model("command:cat"), Command)
    assert isinstance(open_model(f"mailbox:{tmp_path}"), Mailbox)
    (tmp_path / "r.jsonl").write_text("")
    assert isinstance(open_model(f"recorded:{tmp_path / 'r.jsonl'}"), Recorded)


def test_a_reply_file_is_never_read_beyond_its_limit(tmp_path: Path) -> None:
    (tmp_path / "0001.reply.md").write_text("x" * (MAX_REPLY_BYTES + 100))
    reply = asyncio.run(Mailbox(tmp_path).ask(request()))
    assert len(reply.text) == MAX_REPLY_BYTES + 1

"""Headless Chromium over its debugging pipe: no other package is needed."""

import contextlib
import itertools
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

EXECUTABLE = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WAIT_S = 30.0
# Chromium reads commands from descriptor 3 and writes to 4.
_AT_3_AND_4 = (
    "import os, sys; r, w = map(int, sys.argv[1:3]); os.dup2(r, 103); os.dup2(w, 104); os.dup2(103, 3); "
    "os.dup2(104, 4); os.execv(sys.argv[3], sys.argv[3:])"
)
T = TypeVar("T")


@dataclass
class Browser:
    """Messages are JSON, each ended by a zero byte."""

    to: int
    out: int
    events: list[dict[str, Any]] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _rest: bytes = b""

    def ask(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + WAIT_S
        while (answer := self._next(end)).get("id") != number:
            self.events.append(answer)
        assert "error" not in answer, answer
        return dict(answer["result"])

    def _next(self, end: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            assert select.select([self.out], [], [], max(0.0, end - time.monotonic()))[0], (
                "Chromium says nothing"
            )
            self._rest += os.read(self.out, 1 << 20)
        message, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(message))


@dataclass
class Page:
    """One tab."""

    browser: Browser
    session: str

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self.browser.ask(method, self.session, **parameters)

    def open(self, url: str) -> None:
        self.ask("Page.navigate", url=url)
        self.until(
            lambda: self.eval(f"document.readyState == 'complete' && location.href == {json.dumps(url)}")
        )

    def eval(self, expression: str) -> Any:
        """Value of an expression; ``None`` where the page is just changing."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        return answer["result"].get("value")

    def until(self, look: Callable[[], T]) -> T:
        end = time.monotonic() + WAIT_S
        while not (seen := look()):
            assert time.monotonic() < end, self.eval("document.body.innerText")
            time.sleep(0.02)
        return seen

    def choose(self, selector: str, file: Path) -> None:
        root = self.ask("DOM.getDocument")["root"]["nodeId"]
        node = self.ask("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.ask("DOM.setFileInputFiles", nodeId=node, files=[str(file)])

    def said(self) -> list[str]:
        """What the console heard and what went wrong."""
        self.eval("0")  # whatever is under way comes before this answer
        texts = []
        for event in self.browser.events:
            parameters = event.get("params", {})
            match event.get("method"):
                case "Runtime.consoleAPICalled" | "Runtime.exceptionThrown":
                    texts.append(json.dumps(parameters))
                case "Log.entryAdded":
                    texts.append(parameters["entry"]["text"])
        return texts

    def requests(self) -> list[str]:
        sent = (e["params"] for e in self.browser.events if e.get("method") == "Network.requestWillBeSent")
        return [event["request"]["url"] for event in sent]

    def show(self, width: int, scheme: str) -> None:
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])


@contextlib.contextmanager
def chromium(profile: Path) -> Iterator[Page]:
    assert EXECUTABLE is not None
    its_in, our_out = os.pipe()
    our_in, its_out = os.pipe()
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run")
    command = [EXECUTABLE, *options, f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"]
    with subprocess.Popen(
        [sys.executable, "-c", _AT_3_AND_4, str(its_in), str(its_out), *command],
        pass_fds=(its_in, its_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        os.close(its_in)
        os.close(its_out)
        try:
            browser = Browser(our_out, our_in)
            target = browser.ask("Target.createTarget", url="about:blank")["targetId"]
            session = browser.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            page = Page(browser, session)
            for domain in ("Page", "Runtime", "Log", "Network", "DOM"):
                page.ask(f"{domain}.enable")
            yield page
            browser.ask("Browser.close")
        finally:
            process.terminate()
            os.close(our_out)
            os.close(our_in)

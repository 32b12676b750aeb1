"""A real HTTP server that speaks OpenAI's protocol as well or as badly as a test wants."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Answer:
    """One scripted answer. ``text`` becomes a well-formed completion unless ``raw`` is given."""

    text: str = "hello"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    delay_s: float = 0.0
    cut: bool = False
    """End the connection in the middle."""


@dataclass
class Script:
    """Answers in order (the last one again and again) and the requests that came."""

    answers: list[Answer]
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)

    def next(self) -> Answer:
        """The answer to this request."""
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def completion(text: str) -> dict[str, Any]:
    """A chat completion as OpenAI writes it."""
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-4o-mini",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }


def events(text: str) -> bytes:
    """The same as server-sent events, one character a chunk."""
    common = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o-mini"}
    pieces: list[dict[str, Any]] = [{"index": 0, "delta": {"role": "assistant", "content": c}} for c in text]
    pieces.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    lines = [json.dumps({**common, "choices": [piece]}) for piece in pieces]
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    lines.append(json.dumps({**common, "choices": [], "usage": usage}))
    return b"".join(f"data: {line}\n\n".encode() for line in [*lines, "[DONE]"])


@contextmanager
def serve(*answers: Answer) -> Iterator[tuple[str, Script]]:
    """Base URL of a server that gives these answers, and what it was asked."""
    script = Script(list(answers))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            script.requests.append(body)
            script.keys.append(self.headers.get("Authorization", ""))
            answer = script.next()
            time.sleep(answer.delay_s)
            stream = bool(body.get("stream")) and answer.status == 200
            good = events(answer.text) if stream else json.dumps(completion(answer.text)).encode()
            data = good if answer.raw is None else answer.raw
            try:
                self.send_response(answer.status)
                kind = "text/event-stream" if stream else "application/json"
                for name, value in {"Content-Type": kind, **answer.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data[: len(data) // 2] if answer.cut else data)
                if answer.cut:
                    self.close_connection = True
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", script
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

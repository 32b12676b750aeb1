"""Models of providers, through pydantic-ai: OpenAI, Anthropic, Google, and all that speak OpenAI's protocol."""

import asyncio
import difflib
import importlib
import time
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from kernelwright.core.errors import MissingError, UserError
from kernelwright.generation.model import ModelError, ModelReply, ModelRequest
from kernelwright.generation.models.keys import VARIABLES, find_key
from kernelwright.generation.models.mailbox import usage_of
from kernelwright.generation.reply import MAX_REPLY_BYTES

INSTALL: Final = "pip install 'kernelwright[llm]'"
TRIES: Final = 3
FIRST_WAIT_S: Final = 1.0
MOST_WAIT_S: Final = 60.0
LOCAL: Final = {"ollama": "http://localhost:11434/v1", "vllm": "http://localhost:8000/v1"}
"""Servers on this machine, which need no key."""
_OTHERS: Final = (
    "alibaba azure azure-responses bedrock cerebras cohere crusoe deepseek fireworks github github-copilot google-cloud "
    "groq heroku huggingface litellm meta mistral moonshotai nebius openai-chat openai-responses openrouter ovhcloud "
    "sambanova snowflake together vercel xai zai"
)
PROVIDERS: Final = frozenset({*VARIABLES, *_OTHERS.split()})
"""What pydantic-ai knows, for who has not installed it; a version that knows more is asked first."""
OTHER_WAYS: Final = ("command", "mailbox", "recorded", "catalogue")
OWN_SERVERS: Final = frozenset({"openai", *LOCAL})
MALFORMED: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What the client libraries let through when an answer is not what the protocol promises."""


@dataclass(frozen=True)
class Spec:
    """``provider:name``, or ``provider:name@URL`` for a server of one's own."""

    provider: str
    name: str
    url: str = ""

    @classmethod
    def parse(cls, text: str) -> "Spec":
        """From the command line. Raises UserError."""
        provider, _, rest = text.partition(":")
        name, at, url = rest.partition("@http")
        if not provider or not name:
            raise UserError(f"--model {text!r}: use provider:name, as in openai:NAME or vllm:NAME@URL")
        if (at and not urlsplit(f"http{url}").netloc) or (not at and "@" in name and provider in OWN_SERVERS):
            raise UserError(f"--model {text!r}: the URL behind @ must be http://host or https://host")
        if "@" in url:
            raise UserError(
                "--model: the URL holds a user or a password, which would be kept: use the keys file"
            )
        return cls(provider, name, f"http{url}" if at else LOCAL.get(provider, ""))

    def __str__(self) -> str:
        return f"{self.provider}:{self.name}" + (f"@{self.url}" if self.url else "")


class Provider:
    """Implements :class:`~kernelwright.generation.model.Model`.

    Overloads, server errors and broken connections are tried again, up to ``tries`` times within the request's
    time. ``stream`` reads the reply as it is written, which some proxies need to keep a long one alive.
    Raises MissingError without the ``llm`` extra, UserError for an unknown provider or a missing key.
    """

    def __init__(
        self, spec: Spec, *, stream: bool = False, tries: int = TRIES, first_wait_s: float = FIRST_WAIT_S
    ) -> None:
        self.name = str(spec)
        self._stream = stream
        self._tries = tries
        self._first_wait_s = first_wait_s
        self._model = _make(spec)

    async def ask(self, request: ModelRequest) -> ModelReply:
        """One reply. Raises ModelError; with ``retry_after_s`` when the provider is only busy."""
        started = time.monotonic()
        wait = self._first_wait_s
        for attempt in range(1, self._tries + 1):
            left = request.timeout_s - (time.monotonic() - started)
            try:
                async with asyncio.timeout(left):
                    response = await self._once(request, left)
            except TimeoutError:
                raise ModelError(f"{self.name}: no reply within {request.timeout_s:g} s") from None
            except _errors().AgentRunError as error:
                failure = self._failure(error, wait)
                pause = failure.retry_after_s
                left = request.timeout_s - (time.monotonic() - started)
                if pause is None or attempt == self._tries or pause >= left:
                    raise failure from None
                await asyncio.sleep(pause)
                wait = min(2 * wait, MOST_WAIT_S)
            except MALFORMED as error:
                raise ModelError(f"{self.name}: no well-formed answer: {_short(error)}") from None
            else:
                return self._reply(response, time.monotonic() - started)
        raise ModelError(f"{self.name}: was not asked")

    async def close(self) -> None:
        """Close the connections."""
        client = getattr(self._model, "client", None)
        if client is not None:
            await client.close()

    async def _once(self, request: ModelRequest, left: float) -> Any:
        direct = importlib.import_module("pydantic_ai.direct")
        messages = importlib.import_module("pydantic_ai.messages")
        prompt = messages.ModelRequest(
            parts=[messages.UserPromptPart(content=request.prompt)], instructions=request.instructions
        )
        settings = {"max_tokens": request.max_output_tokens, "timeout": left}
        if not self._stream:
            return await direct.model_request(self._model, [prompt], model_settings=settings)
        async with direct.model_request_stream(self._model, [prompt], model_settings=settings) as stream:
            async for _ in stream:
                pass
            return stream.get()

    def _failure(self, error: Any, wait: float) -> ModelError:
        """What went wrong in one line, without the key; ``retry_after_s`` where trying again makes sense."""
        kinds = _errors()
        status = getattr(error, "status_code", None)
        text = _short(error)
        busy = kinds.ModelRateLimitError, kinds.ModelUnavailableError, kinds.ModelServerError
        again = isinstance(error, (*busy, kinds.ModelConnectionError)) or status in {408, 409, 425, 429}
        again = again or (isinstance(status, int) and status >= 500)
        if isinstance(error, kinds.ModelQuotaExceededError) or status in {401, 403}:
            again = False
        asked = getattr(error, "retry_after", None)
        pause = min(float(asked), 24 * 3600.0) if asked else wait
        return ModelError(f"{self.name}: {text}", retry_after_s=pause if again else None)

    def _reply(self, response: Any, seconds: float) -> ModelReply:
        text = "".join(part.content for part in response.parts if part.part_kind == "text")
        usage = {
            "input_tokens": response.usage.input_tokens or None,
            "output_tokens": response.usage.output_tokens or None,
            "cost_usd": _cost(response),
        }
        return ModelReply(text[: MAX_REPLY_BYTES + 1], usage_of(usage), seconds)


def _cost(response: Any) -> float | None:
    """US dollars by the offline price table; ``None`` where it does not know the model."""
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError, AssertionError):
        return None


def _short(error: Exception) -> str:
    """Status and the body's message on one bounded line: a body is the provider's text and untrusted."""
    status = getattr(error, "status_code", None)
    body = getattr(error, "body", None)
    said = body.get("message") if isinstance(body, dict) else None
    if not isinstance(said, str):
        said = str(getattr(error, "message", error)) if status is None else str(body or "")
    line = " ".join("".join(c if c.isprintable() else " " for c in said).split())[:200]
    return f"HTTP {status}: {line}" if status is not None else line or type(error).__name__


def _errors() -> Any:
    return importlib.import_module("pydantic_ai.exceptions")


def _refuse_unknown(spec: Spec) -> None:
    """A misspelt provider is told as such, whatever is installed; behind a URL the name is the user's own."""
    if spec.url or spec.provider in PROVIDERS:
        return
    try:  # a version that knows more than we do
        importlib.import_module("pydantic_ai.providers").infer_provider_class(spec.provider)
    except (ImportError, ValueError) as error:
        if isinstance(error, ImportError) and (error.name or "").partition(".")[0] != "pydantic_ai":
            return  # a provider whose own package is lacking
    else:
        return
    like = difflib.get_close_matches(spec.provider.lower(), [*PROVIDERS, *OTHER_WAYS], 1)
    meant = f" (is {like[0]!r} meant?)" if like else ""
    raise UserError(
        f"--model {spec}: there is no provider {spec.provider!r}{meant}: there are {', '.join(sorted(PROVIDERS))};"
        f" NAME@URL for a server that speaks OpenAI's protocol; and the ways {', '.join(OTHER_WAYS)}"
    )


def _make(spec: Spec) -> Any:
    _refuse_unknown(spec)
    try:
        importlib.import_module("pydantic_ai")
    except ImportError:
        raise MissingError(f"--model {spec} needs pydantic-ai: {INSTALL}") from None
    key = find_key(spec.provider) or ("none" if spec.provider in LOCAL else None)
    if spec.provider in VARIABLES and key is None and not spec.url:
        raise UserError(
            f"--model {spec}: no key: set {VARIABLES[spec.provider]}, or put it into the keys file"
        )
    try:
        return _provider_model(spec, key)
    except ImportError as error:
        raise MissingError(f"--model {spec} needs {error.name or 'a package'}: {INSTALL}") from None


def _provider_model(spec: Spec, key: str | None) -> Any:
    """The clients' own retries are off: this module retries, and the ledger sees every request."""
    if spec.url or spec.provider == "openai":
        openai = importlib.import_module("openai")
        client = openai.AsyncOpenAI(api_key=key or "none", base_url=spec.url or None, max_retries=0)
        module = importlib.import_module("pydantic_ai.models.openai")
        provider = importlib.import_module("pydantic_ai.providers.openai").OpenAIProvider(
            openai_client=client
        )
        return module.OpenAIChatModel(spec.name, provider=provider)
    if spec.provider == "anthropic":
        client = importlib.import_module("anthropic").AsyncAnthropic(api_key=key, max_retries=0)
        provider = importlib.import_module("pydantic_ai.providers.anthropic").AnthropicProvider(
            anthropic_client=client
        )
        return importlib.import_module("pydantic_ai.models.anthropic").AnthropicModel(
            spec.name, provider=provider
        )
    models = importlib.import_module("pydantic_ai.models")
    providers = importlib.import_module("pydantic_ai.providers")

    def with_key(provider: str) -> Any:
        kind = providers.infer_provider_class(provider)
        return kind(api_key=key) if key else kind()

    try:
        return models.infer_model(f"{spec.provider}:{spec.name}", with_key)
    except (_errors().UserError, ValueError) as error:
        said = " ".join(str(error).split())[:200]
        raise UserError(f"--model {spec}: {said}") from None

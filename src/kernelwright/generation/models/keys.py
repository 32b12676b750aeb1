"""API keys: from the environment, or from a file that only its owner can read. Never logged, never stored."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kernelwright.core.errors import NoSuchFile, UserError
from kernelwright.core.files import read_text
from kernelwright.core.homes import home
from kernelwright.core.toml import TomlFault, parse_toml

VARIABLES: Final = {
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "google": "GOOGLE_API_KEY",
    "ollama": "OLLAMA_API_KEY",
    "vllm": "VLLM_API_KEY",
}
FILE_VARIABLE: Final = "KERNELWRIGHT_KEYS"
MAX_FILE_BYTES: Final = 64 << 10


def keys_file(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the file is looked for: ``$KERNELWRIGHT_KEYS``, else ``keys.toml`` in the user's configuration."""
    if named := environment.get(FILE_VARIABLE):
        return Path(named)
    base = environment.get("XDG_CONFIG_HOME") or home() / ".config"
    return Path(base) / "kernelwright" / "keys.toml"


def find_key(provider: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """The provider's key, or ``None``. Raises UserError for a file that others may read or that is no TOML."""
    variable = VARIABLES.get(provider, f"{provider.upper().replace('-', '_')}_API_KEY")
    if key := environment.get(variable, "").strip():
        return key
    path = keys_file(environment)
    try:
        text = read_text(path, MAX_FILE_BYTES)
        mode = path.stat().st_mode
    except (NoSuchFile, FileNotFoundError):
        return None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise UserError(f"{path}: others may read your keys: chmod 600 {path}")
    try:
        table = parse_toml(text)
    except TomlFault:
        # Not the parser's message: it could quote a key.
        raise UserError(f"{path}: not valid TOML: it holds keys as lines such as openai = '...'") from None
    found = table.get(provider, "")
    if not isinstance(found, str):
        raise UserError(f"{path}: {provider}: must be a text in quotes: {provider} = '...'")
    return found.strip() or None

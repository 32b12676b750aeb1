"""A finished campaign, made once."""

import asyncio
from pathlib import Path

import pytest

from .campaigns import make_campaign


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The memory of a campaign on a pretended GPU; nobody changes it."""
    return asyncio.run(make_campaign(tmp_path_factory.mktemp("finished")))

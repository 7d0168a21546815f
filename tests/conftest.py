"""What every test gets; see `guards`. mypy leaves this file out: it takes one `conftest` only."""

from guards import no_network, no_settings

__all__ = ["no_network", "no_settings"]

"""Who uses RDF Delta's API. Its clients send no name, so they are known by their key, else by their address."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import Request

from api.access import principal_of

__all__ = ["Client", "client_of"]


@dataclass(frozen=True, slots=True)
class Client:
    """A key, or an address without one. Several programs may be the same client."""

    owner: str | None
    """The id of the principal; None where no keys are asked for."""
    address: str

    @property
    def name(self) -> str:
        """What it is known by."""
        return self.owner or self.address


async def client_of(request: Request) -> Client:
    """The client that makes a request. Raises Refusal."""
    principal = await principal_of(request)
    return Client(principal.owner, "" if request.client is None else request.client.host)

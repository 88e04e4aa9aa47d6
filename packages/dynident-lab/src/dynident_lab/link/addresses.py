"""From an address to a controller: the protocols of this room by name, and those of other packages."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any
from urllib.parse import parse_qs, urlsplit

from dynident.errors import LinkError
from dynident_lab.link.controller import RemoteController
from dynident_lab.link.lynx_client import LynxClient
from dynident_lab.link.simple_client import SimpleClient

GROUP = "dynident.controllers"  # of entry points that name protocols of other packages


def open_controller(address: str, **options: Any) -> RemoteController:
    """Return the controller of an address; nothing is connected yet.

    Parameters
    ----------
    address : str
        ``simple_message://127.0.0.1:11000`` or ``lynx://127.0.0.1:12000``; options follow a question mark, as in
        ``?state=11002&transport=udp&order=big&mode=download``. Other protocols are classes that installed packages name in
        the group ``dynident.controllers``; they are called with host, port (None when not given) and options.
    **options
        The same options as keywords, and ``key`` (bytes) for lynx.

    Returns
    -------
    RemoteController
        Ready to `connect`.
    """
    scheme, _, rest = address.partition("://")
    try:
        parts = urlsplit(f"//{rest}")  # a scheme with an underscore is none for urllib
        port = parts.port
        given: dict[str, Any] = {
            name: values[-1] for name, values in parse_qs(parts.query, strict_parsing=bool(parts.query)).items()
        }
    except ValueError as error:
        raise LinkError(f"controller '{address}' is no address ({error}); give simple_message://127.0.0.1:11000") from error
    kind = _kind(scheme)
    if kind is None or not parts.hostname or parts.path not in ("", "/"):
        raise LinkError(
            f"controller '{address}' is no address; give simple_message://127.0.0.1:11000 or lynx://127.0.0.1:12000"
        )
    make, default = kind
    try:
        return make(parts.hostname, default if port is None else port, **{**given, **options})
    except TypeError as error:
        raise LinkError(f"controller '{address}' has an option that its protocol does not know ({error})") from error


def _kind(scheme: str) -> tuple[Callable[..., RemoteController], int | None] | None:
    """Return the class of a protocol and its port; None for one that nobody knows."""
    if scheme == "simple_message":
        return SimpleClient, 11000
    if scheme == "lynx":
        return LynxClient, 12000
    others = list(entry_points(group=GROUP, name=scheme))
    return (others[0].load(), None) if others else None

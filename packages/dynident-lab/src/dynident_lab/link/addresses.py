"""From an address to a controller: protocols are entries of the group `dynident.controllers`, ours like those of others."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

from dynident.errors import LinkError
from dynident.plugins import CONTROLLERS, entries, load
from dynident_lab.link.controller import RemoteController


def open_controller(address: str, **options: Any) -> RemoteController:
    """Return the controller of an address; nothing is connected yet.

    Parameters
    ----------
    address : str
        ``simple_message://127.0.0.1:11000`` or ``lynx://127.0.0.1:12000``; options follow a question mark, as in
        ``?state=11002&transport=udp&order=big&mode=download``. Other protocols are classes that installed packages name in
        the group ``dynident.controllers``; they are called with the host, the port if one is given, and the options.
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
    make = load(CONTROLLERS, scheme) if scheme in entries(CONTROLLERS) else None
    if make is None or not parts.hostname or parts.path not in ("", "/"):
        known = ", ".join(entries(CONTROLLERS))
        raise LinkError(
            f"controller '{address}' is no address of a known protocol ({known}); give one such as simple_message://127.0.0.1:11000"
        )
    place = (parts.hostname,) if port is None else (parts.hostname, port)
    try:
        return make(*place, **{**given, **options})  # type: ignore[no-any-return]
    except TypeError as error:
        raise LinkError(f"controller '{address}' has an option that its protocol does not know ({error})") from error

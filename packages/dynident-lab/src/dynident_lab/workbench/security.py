"""Access control of the workbench: a token, host and origin of every request, and the content policy of pages.

The server listens on the loopback interface only. Its address with the token is printed once; the first request exchanges the
token for a cookie, and every other request, websockets included, needs that cookie. Requests of another site in the same
browser lack the cookie (SameSite), names that resolve to this computer are refused (Host), and other origins, too (Origin).
"""

from __future__ import annotations

import hmac
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
# NiceGUI compiles templates and evaluates handlers in the page: it needs 'unsafe-inline' and 'unsafe-eval' (SECURITY.md).
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self' {socket}; worker-src 'self' blob:; "
    "frame-src 'self'; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'self'"
)
# Files of the project are external data: a page among them gets a separate origin and may load nothing.
FILES = (
    "sandbox allow-scripts allow-modals allow-downloads; default-src 'none'; img-src data:; style-src 'unsafe-inline'; {script}"
)
FILE_PATH = "/files/"


class Guard:
    """ASGI middleware that accepts requests with the token or its cookie, and adds the policy to every answer.

    Parameters
    ----------
    app : callable
        Protected ASGI application.
    token : str
        Secret of this run of the server.
    name : str
        Name of the cookie, different for servers on other ports of this computer.
    largest : int
        Largest body of a request [bytes].
    """

    def __init__(self, app: Any, token: str, name: str, largest: int) -> None:
        self.app, self.token, self.name, self.largest = app, token, name, largest

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        headers = {key.decode("latin-1").lower(): value.decode("latin-1") for key, value in scope["headers"]}
        problem = refused(headers)
        if problem:
            await _refuse(scope, receive, send, 403, problem)
            return
        given = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [""])[0]
        if given and scope["type"] == "http" and scope["method"] == "GET" and self._is_token(given):
            cookie = f"{self.name}={self.token}; Path=/; HttpOnly; SameSite=Strict"
            await _redirect(send, scope["path"], cookie)
            return
        if not self._is_token(_cookie(headers, self.name)):
            await _refuse(scope, receive, send, 403, "open the address that dynident workbench printed; it contains the token")
            return
        if scope["type"] == "http" and int(headers.get("content-length") or 0) > self.largest:
            await _refuse(scope, receive, send, 413, f"the file is larger than {self.largest // 1_000_000} MB")
            return
        policy = _policy(scope["path"], headers["host"])

        async def guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                known = [(key, value) for key, value in message["headers"] if key.lower() != b"content-security-policy"]
                message = {**message, "headers": [*known, *_safe(policy)]}
            await send(message)

        await self.app(scope, _limited(receive, self.largest), guarded)

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())


def refused(headers: dict[str, str]) -> str:
    """Return why a request is refused because of host or origin; an empty string for an allowed one."""
    host = headers.get("host", "")
    try:
        name = urlsplit(f"//{host}").hostname
    except ValueError:
        name = None
    if name not in LOOPBACK:
        return "this server accepts requests to localhost only"
    origin = headers.get("origin")
    if origin is not None and (urlsplit(origin).scheme not in ("http", "https") or urlsplit(origin).netloc != host):
        return "requests from other sites are rejected"
    return ""


def _policy(path: str, host: str) -> str:
    """Return the content security policy of a path."""
    if path.startswith(FILE_PATH):
        script = "script-src 'unsafe-inline'" if path.endswith(".html") else ""
        return FILES.format(script=script).rstrip("; ")
    return POLICY.format(socket=f"ws://{host} wss://{host}")


def _safe(policy: str) -> list[tuple[bytes, bytes]]:
    return [
        (b"content-security-policy", policy.encode("latin-1")),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"no-referrer"),
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"cross-origin-resource-policy", b"same-origin"),
    ]


def _cookie(headers: dict[str, str], name: str) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _limited(receive: Any, largest: int) -> Any:
    """Return a receiver that ends a body longer than permitted."""
    count = 0

    async def limited() -> Any:
        nonlocal count
        message = await receive()
        if message["type"] == "http.request":
            count += len(message.get("body", b""))
            if count > largest:
                return {"type": "http.disconnect"}
        return message

    return limited


async def _redirect(send: Any, path: str, cookie: str) -> None:
    """Redirect to the same page with the cookie and without the token in the address."""
    where = path if path.startswith("/") and not path.startswith("//") else "/"
    headers = [(b"location", where.encode("latin-1", "replace")), (b"set-cookie", cookie.encode("latin-1"))]
    await send({"type": "http.response.start", "status": 303, "headers": [*headers, (b"cache-control", b"no-store")]})
    await send({"type": "http.response.body", "body": b""})


async def _refuse(scope: Any, receive: Any, send: Any, status: int, text: str) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008, "reason": text[:120]})
        return
    body = f"{text}\n".encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, (b"connection", b"close")]})
    await send({"type": "http.response.body", "body": body})

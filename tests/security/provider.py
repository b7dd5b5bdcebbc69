"""An OpenID Connect provider of the test's own: discovery, authorisation, token and keys, over real HTTP.

It asks nobody for a password: `user` says who is logged in at it.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

__all__ = ["CLIENT", "SECRET", "Provider", "running_provider"]

CLIENT, SECRET = "mrnlab", "a-secret-of-the-test"


class Provider(ThreadingHTTPServer):
    """`user` holds the claims of whoever logs in next."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.user: dict[str, Any] = {}
        self.key = RSAKey.generate_key(2048, {"kid": "one"})
        self.waiting: dict[str, dict[str, str]] = {}

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def metadata(self) -> str:
        return f"{self.address}/.well-known/openid-configuration"

    def described(self) -> dict[str, Any]:
        return {
            "issuer": self.address,
            "authorization_endpoint": f"{self.address}/authorize",
            "token_endpoint": f"{self.address}/token",
            "jwks_uri": f"{self.address}/keys",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "code_challenge_methods_supported": ["S256"],
        }

    def token(self, code: str, verifier: str) -> dict[str, Any]:
        """The answer to a code that was given out, once, to whoever knows its verifier. Raises KeyError."""
        request = self.waiting.pop(code)
        digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=")
        if digest.decode() != request["code_challenge"]:
            raise KeyError(code)
        now = int(time.time())
        claims = {
            "iss": self.address,
            "aud": CLIENT,
            "sub": self.user["email"],
            "iat": now,
            "exp": now + 300,
            "nonce": request["nonce"],
            **self.user,
        }
        return {
            "token_type": "Bearer",
            "access_token": secrets.token_urlsafe(),
            "expires_in": 300,
            "id_token": jwt.encode({"alg": "RS256", "kid": "one"}, claims, self.key),
        }


class _Handler(BaseHTTPRequestHandler):
    server: Provider

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if url.path == "/.well-known/openid-configuration":
            self._answer(self.server.described())
        elif url.path == "/keys":
            self._answer({"keys": [self.server.key.as_dict(private=False)]})
        elif url.path == "/authorize":
            request = {name: values[0] for name, values in parse_qs(url.query).items()}
            code = secrets.token_urlsafe()
            self.server.waiting[code] = request
            back = urlencode({"code": code, "state": request["state"]})
            self.send_response(302)
            self.send_header("Location", f"{request['redirect_uri']}?{back}")
            self.end_headers()
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        sent = {name: values[0] for name, values in parse_qs(self.rfile.read(length).decode()).items()}
        known = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        if self.headers.get("Authorization") != f"Basic {known}":
            self.send_error(401)
            return
        try:
            self._answer(self.server.token(sent["code"], sent["code_verifier"]))
        except KeyError:
            self.send_error(400)

    def _answer(self, document: dict[str, Any]) -> None:
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing: what pytest shows is about the tests."""


@contextlib.contextmanager
def running_provider() -> Iterator[Provider]:
    """A provider that answers while the block runs."""
    with Provider() as provider:
        thread = threading.Thread(target=provider.serve_forever, daemon=True)
        thread.start()
        try:
            yield provider
        finally:
            provider.shutdown()
            thread.join(timeout=10)

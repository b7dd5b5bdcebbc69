"""Who may come in, where the laboratory demands a login: Streamlit's OpenID Connect, and a list of people.

A login is demanded as soon as `secrets.toml` has a section `[auth]` or a list of people is given. Whatever is
amiss then (a file that cannot be read, no list, no Authlib) keeps everybody out: a mistake must not open the
door.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.auth_util import get_cookie_with_chunks
from streamlit.web.server.server_util import get_cookie_secret
from streamlit.web.server.starlette.starlette_app_utils import decode_signed_value

from dashboard.states import problem, title
from dashboard.text import escape

__all__ = ["account", "admitted", "demanded", "has_logged_in"]

_USER_COOKIE = "_streamlit_user"
_SHARED = frozenset(["redirect_uri", "cookie_secret", "expose_tokens", "client_kwargs"])


def demanded() -> bool:
    """Whether nobody may see or do anything here without a login."""
    return bool(_auth()) or _people() is not None or _unreadable() is not None


def admitted() -> bool:
    """Whether this visitor may use the pages; where not, the way in is drawn instead."""
    if not demanded():
        return True
    wrong = _misconfigured()
    if wrong is not None:
        title("MRN Lab", "This laboratory asks for a login.")
        problem(wrong)
        return False
    user = st.user.to_dict()
    if not user.get("is_logged_in"):
        _way_in()
        return False
    refusal = _refusal(user)
    if refusal is not None:
        title("MRN Lab", "This laboratory asks for a login.")
        problem(refusal)
        st.button("Log out", icon=":material/logout:", on_click=st.logout)
    return refusal is None


def account() -> None:
    """In the sidebar: who is logged in, and the way out."""
    if demanded():
        with st.sidebar:
            st.button("Log out", icon=":material/logout:", type="tertiary", on_click=st.logout, key="log_out")
            st.caption(f":material/person: {escape(st.user.to_dict().get('email', ''))}")


def has_logged_in(cookies: Mapping[str, str]) -> bool:
    """Whether a request with these cookies comes from somebody who may use the pages."""

    def signed(name: str) -> bytes | None:
        value = cookies.get(name)
        return None if value is None else decode_signed_value(get_cookie_secret(), name, value)

    stored = get_cookie_with_chunks(signed, _USER_COOKIE)
    if stored is None or _misconfigured() is not None:
        return False
    user = json.loads(stored)
    return bool(user.get("is_logged_in")) and _refusal(user) is None


def _way_in() -> None:
    title("MRN Lab", "This laboratory asks for a login.")
    auth = _auth()
    named = [name for name, value in auth.items() if name not in _SHARED and isinstance(value, Mapping)]
    for provider in named or [None]:
        st.button(
            f"Log in with {escape(provider)}" if provider else "Log in",
            type="primary",
            icon=":material/login:",
            on_click=st.login,
            args=(provider,),
            key=f"log_in_{provider}",
        )


def _refusal(user: Mapping[str, Any]) -> str | None:
    """Why somebody who has logged in may not come in; None where they may."""
    address = str(user.get("email") or "").strip().lower()
    # Some providers say it in a string.
    if str(user.get("email_verified", True)).lower() == "false":
        return f"The address {address} has not been verified by its provider. Verify it there, then log in."
    people = _people() or ()
    domain = address.rpartition("@")[2]
    if "*" in people or (domain and {address, domain, f"@{domain}"} & set(people)):
        return None
    return (
        f"You are logged in as {address or 'somebody without an e-mail address'}, who is not on this "
        "laboratory's list. Ask whoever runs it to add you."
    )


def _people() -> tuple[str, ...] | None:
    """The addresses and domains that may come in; None where none are given."""
    given = os.environ.get("MRNLAB_ALLOWED")
    listed = given.replace(",", " ").split() if given is not None else _secrets("mrnlab").get("allowed")
    return None if listed is None else tuple(str(one).strip().lower() for one in listed)


def _misconfigured() -> str | None:
    """What keeps everybody out, in a sentence; None where a login can work."""
    unreadable = _unreadable()
    if unreadable is not None:
        return f"{unreadable} cannot be read, so nobody can log in. Correct it and start the app again."
    if not _auth():
        return (
            "There is a list of people who may come in, but no [auth] section in secrets.toml to log in "
            "by. Add it (docs/security.md) and start the app again."
        )
    if not _people():
        return (
            "Nobody is on this laboratory's list. Set MRNLAB_ALLOWED to the addresses or domains that may "
            "come in (ada@example.org, example.org), or to * for all whom the provider lets in."
        )
    if importlib.util.find_spec("authlib") is None:
        return "Logging in needs the Python package Authlib: pip install 'mrnlab[login]'."
    return None


def _unreadable() -> Path | None:
    """A secrets.toml that is there and cannot be used: Streamlit then goes on as if there were none."""
    there = [path for path in map(Path, st.get_option("secrets.files")) if path.exists()]
    return there[0] if there and not st.secrets.load_if_toml_exists() else None


def _auth() -> Mapping[str, Any]:
    return _secrets("auth")


def _secrets(section: str) -> Mapping[str, Any]:
    """That section of secrets.toml; empty where there is none."""
    if not st.secrets.load_if_toml_exists():
        return {}
    found = st.secrets.get(section, {})
    return found if isinstance(found, Mapping) else {}

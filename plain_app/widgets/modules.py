"""How the JavaScript of our widgets reaches the browser: as ES modules, by a route of our own.

Streamlit serves a component's files only for an installed package that carries a second
`pyproject.toml`, which an editable install does not offer; JavaScript given as text becomes a
module of its own that can import nothing by a relative path. So that text is two lines here, which
import the real module from the route below (`st.App(routes=...)`). The address has a digest of all
modules in it: browsers keep them for good, and never mix those of two versions.
"""

from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

_HERE = Path(__file__).parent
_FOREVER = {"cache-control": "private, max-age=31536000, immutable"}
_ENTRY = """
const {{ default: widget }} = await import(`${{location.origin}}{address}`);
export default widget;
"""


def component(name: str, module: str, html: str = "", css: str = "") -> Any:
    """Return a component whose JavaScript is the default export of a module."""
    import streamlit as st

    style = (_HERE / css).read_text(encoding="utf-8") if css else None
    entry = _ENTRY.format(address=f"{_root()}/{module}")
    return st.components.v2.component(name, html=html or None, css=style, js=entry)


def module_route() -> Route:
    """Return the route of all modules, for the server."""
    return Route(f"{_root()}/{{name:path}}", _serve)


async def _serve(request: Request) -> Response:
    module = _modules().get(request.path_params["name"])
    if module is None:
        return Response(status_code=404)
    return Response(module, media_type="text/javascript", headers=_FOREVER)


@cache
def _modules() -> dict[str, bytes]:
    return {
        path.relative_to(_HERE).as_posix(): path.read_bytes()
        for path in sorted(_HERE.rglob("*.js"))
    }


@cache
def _root() -> str:
    digest = sha256(b"".join(name.encode() + text for name, text in _modules().items()))
    return f"/widgets/{digest.hexdigest()[:16]}"

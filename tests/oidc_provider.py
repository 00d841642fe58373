"""A small OpenID Connect provider, to log in with for real: whoever asks is Ada.

python oidc_provider.py PORT [CLAIMS]: a JSON object of more claims, or other ones
"""

import json
import secrets
import sys
import time

import uvicorn
from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse
from starlette.routing import Route

KEY = RSAKey.generate_key(2048, parameters={"kid": "one", "use": "sig", "alg": "RS256"})


def provider(issuer: str, more: dict[str, object]) -> Starlette:
    """Return the four answers of a provider; a login is granted without a question."""
    asked: dict[str, dict[str, str]] = {}

    async def metadata(_: Request) -> JSONResponse:
        return JSONResponse(
            {
                "issuer": issuer,
                "authorization_endpoint": f"{issuer}/authorize",
                "token_endpoint": f"{issuer}/token",
                "jwks_uri": f"{issuer}/keys",
                "response_types_supported": ["code"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["RS256"],
            }
        )

    async def keys(_: Request) -> JSONResponse:
        return JSONResponse({"keys": [KEY.as_dict(private=False)]})

    async def authorize(request: Request) -> RedirectResponse:
        query, code = dict(request.query_params), secrets.token_hex(8)
        asked[code] = query
        return RedirectResponse(f"{query['redirect_uri']}?code={code}&state={query['state']}")

    async def token(request: Request) -> JSONResponse:
        query, now = asked.pop(str((await request.form())["code"])), int(time.time())
        claims = {"iss": issuer, "aud": query["client_id"], "nonce": query["nonce"]}
        claims |= {"sub": "7", "name": "Ada", "email": "ada@example.org"}
        claims |= {"iat": now, "exp": now + 600, "email_verified": True, **more}
        signed = jwt.encode({"alg": "RS256", "kid": "one"}, claims, KEY)
        return JSONResponse({"access_token": "x", "token_type": "Bearer", "id_token": signed})

    return Starlette(
        routes=[
            Route("/.well-known/openid-configuration", metadata),
            Route("/keys", keys),
            Route("/authorize", authorize),
            Route("/token", token, methods=["POST"]),
        ]
    )


if __name__ == "__main__":
    port = int(sys.argv[1])
    more = json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}
    uvicorn.run(provider(f"http://127.0.0.1:{port}", more), port=port, log_level="warning")

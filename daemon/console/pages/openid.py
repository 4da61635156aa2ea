"""Login by an OpenID Connect provider: authorization code flow with PKCE, state and nonce.

OpenID Connect Core 1.0, 3.1 (what a client checks of an ID token: 3.1.3.7); RFC 7636 for PKCE, RFC 9207 for `iss` in
the answer. Local passwords work without the provider. The libraries are an extra, loaded only where an issuer is
configured: `make .venv/.openid`.
"""

import asyncio
import base64
import hmac
import importlib.util
import ipaddress
import re
import secrets
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus, unquote, urlsplit

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from daemon import logs
from daemon.console.auth.access import address_of, agent_of, home, inside
from daemon.console.auth.users import ROLES, Role
from daemon.console.context import ConsoleContext
from protocols.contract.people import OPENID

__all__ = ["routes"]

_NEEDED = ("authlib", "httpx", "joserfc")
# Only asymmetric signatures: neither "none" nor those keyed with the client's secret.
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"]
_TIMEOUT = 5.0
_LONGEST = 256 * 1024
_LEEWAY = 60
_LOGIN_TIMEOUT_S = 600
_AT_ONCE = 20


class _Away(Exception):
    """The provider is unreachable or answers wrongly. The reason is for the log."""


class _Refused(Exception):
    """The login is refused. The reason is for the log; `key` is the text for the person."""

    def __init__(self, reason: str, key: str = "access.openid_refused") -> None:
        super().__init__(reason)
        self.key = key


class _Metadata(Struct, frozen=True):
    """Metadata of the provider (OpenID Connect Discovery 1.0, 3)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)


class _Tokens(Struct, frozen=True):
    """Its answer to a code."""

    id_token: str
    access_token: str = ""


class _Keys(Struct, frozen=True):
    """Its public keys."""

    keys: list[dict[str, Any]]


class _ProviderUser(Struct, frozen=True):
    """A user as the provider describes them."""

    name: str
    role: Role
    subject: str


def routes(context: ConsoleContext) -> list[Route]:
    """The routes; empty where no issuer is configured."""
    if not context.config.console.openid.issuer:
        return []
    one = _OpenId(context)
    return [Route("/login/openid", one.begin), Route("/login/openid/done", one.done)]


class _OpenId:
    """One provider. The state between `begin` and `done` is in the browser's cookie, authenticated by our key."""

    def __init__(self, context: ConsoleContext) -> None:
        self._context = context
        self._settings = context.config.console.openid
        self._key = secrets.token_bytes(32)
        # SameSite=Lax: the way back begins at the provider.
        self._cookie = "__Host-feltd-openid" if context.access.secure else "feltd-openid"
        self._log = logs.get(console=context.config.site.name, issuer=self._settings.issuer)
        self._missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
        self._under_way = 0
        if self._missing:
            remedy = "cd /opt/feltd && sudo make .venv/.openid, then restart the console; or take [console.openid] away"
            self._log.error("openid.missing", missing=self._missing, remedy=remedy)

    async def begin(self, request: Request) -> Response:
        """Redirect the browser to the provider."""
        to = request.query_params.get("to", "")[:500]
        try:
            metadata = await self._discovered()
        except _Away as error:
            return self._away(request, to, error)
        secret, issued = secrets.token_urlsafe(32), str(int(self._context.now().timestamp()))
        from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
        from authlib.oauth2.rfc7636 import create_s256_code_challenge

        where = prepare_grant_uri(
            metadata.authorization_endpoint,
            self._settings.client,
            "code",
            redirect_uri=self._redirect_uri(request),
            scope="openid profile",
            state=self._of(secret, issued, "state"),
            nonce=self._of(secret, issued, "nonce"),
            code_challenge=create_s256_code_challenge(self._of(secret, issued, "verifier")),
            code_challenge_method="S256",
        )
        answer = RedirectResponse(where, 303)
        answer.set_cookie(
            self._cookie,
            f"{secret}.{issued}.{quote(to, safe='')}",
            max_age=_LOGIN_TIMEOUT_S,
            path="/",
            secure=self._context.access.secure,
            httponly=True,
            samesite="lax",
        )
        return answer

    async def done(self, request: Request) -> Response:
        """Handle the redirect back from the provider."""
        secret, _, rest = request.cookies.get(self._cookie, "").partition(".")
        issued, _, quoted = rest.partition(".")
        to = unquote(quoted)
        try:
            code = self._code(request, secret, issued)
            metadata = await self._discovered()
            tokens = await self._exchanged(request, metadata, code, self._of(secret, issued, "verifier"))
            keys = msgspec.convert(await self._fetched("GET", metadata.jwks_uri), _Keys)
            claims = self._verified(tokens, keys, self._of(secret, issued, "nonce"))
            person = self._provider_user(claims)
        except (_Away, msgspec.ValidationError) as error:
            answer = self._away(request, to, error)
        except _Refused as error:
            self._log.warning("openid.refused", reason=str(error), address=address_of(request))
            answer = self._context.login_page(request, to, 403, said=error.key)
        else:
            answer = self._let_in(request, person, to)
        answer.delete_cookie(self._cookie, path="/", secure=self._context.access.secure, httponly=True, samesite="lax")
        return answer

    def _away(self, request: Request, to: str, error: Exception) -> Response:
        key = "access.openid_missing" if self._missing else "access.openid_away"
        if not self._missing:
            self._log.warning("openid.away", reason=str(error), remedy="local users log in as ever")
        return self._context.login_page(request, to, 503, said=key)

    def _let_in(self, request: Request, person: _ProviderUser, to: str) -> Response:
        context, address = self._context, address_of(request)
        detail = {"address": address, "issuer": self._settings.issuer, "sub": person.subject}
        context.actions.note(person.name, person.role, "login", "", detail)
        secret = context.access.users.begin(person.name, address, agent_of(request), person.role)
        answer = context.page(
            request, "access_in.html", to=inside(to) if to else home(context.config.console, person.role, ())
        )
        context.access.let_in(answer, secret)
        return answer

    # ---- the steps

    def _of(self, secret: str, issued: str, what: str) -> str:
        """State, nonce or PKCE verifier of one login, 43 characters, derived from the browser's secret and our key."""
        digest = hmac.digest(self._key, f"{what} {issued} {secret}".encode(errors="surrogatepass"), "sha256")
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()

    def _redirect_uri(self, request: Request) -> str:
        base = self._context.config.console.url or str(request.base_url)
        return base.rstrip("/") + "/login/openid/done"

    def _code(self, request: Request, secret: str, issued: str) -> str:
        """The code of the answer to a recent login of this browser. Raises _Refused."""
        asked = request.query_params
        state = self._of(secret, issued, "state")
        if not secret or not hmac.compare_digest(state.encode(), asked.get("state", "").encode(errors="replace")):
            raise _Refused("state: not of a login that this browser began")
        if not 0 <= self._context.now().timestamp() - int(issued) <= _LOGIN_TIMEOUT_S:
            raise _Refused("state: begun too long ago")
        if asked.get("iss", self._settings.issuer) != self._settings.issuer:
            raise _Refused("iss: the answer of another provider")
        if "error" in asked or not asked.get("code"):
            raise _Refused(f"no code: {asked.get('error', '')[:100]}")
        return asked["code"]

    async def _discovered(self) -> _Metadata:
        """Raises _Away."""
        if self._missing:
            raise _Away(f"not installed: {', '.join(self._missing)}")
        issuer = self._settings.issuer
        found = await self._fetched("GET", issuer.rstrip("/") + "/.well-known/openid-configuration")
        try:
            metadata = msgspec.convert(found, _Metadata)
        except msgspec.ValidationError as error:
            raise _Away(f"discovery: {error}") from error
        if metadata.issuer != issuer:
            raise _Away(f"discovery: its issuer is {metadata.issuer[:200]!r}, not that of [console.openid]")
        if not _safe(metadata.authorization_endpoint):
            raise _Away("discovery: its authorization_endpoint must be https")
        return metadata

    def _secret(self) -> str:
        """The secret of this client. Raises _Away."""
        try:
            return Path(self._settings.secret_file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise _Away(f"{self._settings.secret_file}: {error}") from error

    async def _exchanged(self, request: Request, metadata: _Metadata, code: str, verifier: str) -> _Tokens:
        """The tokens for a code. Raises _Away, _Refused."""
        client = self._settings.client
        secret = self._secret()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect_uri(request),
            "code_verifier": verifier,
        }
        headers = {}
        if "client_secret_basic" in metadata.token_endpoint_auth_methods_supported:
            pair = f"{quote_plus(client)}:{quote_plus(secret)}"  # RFC 6749, 2.3.1
            headers["authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        else:
            form |= {"client_id": client, "client_secret": secret}
        found = await self._fetched("POST", metadata.token_endpoint, form, headers)
        try:
            return msgspec.convert(found, _Tokens)
        except msgspec.ValidationError as error:
            raise _Refused(f"no ID token: {error}") from error

    async def _fetched(
        self, method: str, url: str, form: dict[str, str] | None = None, headers: dict[str, str] | None = None
    ) -> Any:
        """A JSON document of the provider. Raises _Away; _Refused where it refuses the request."""
        import httpx

        if not _safe(url):
            raise _Away(f"{url[:200]}: must be https; plain http is allowed only for this computer")
        if self._under_way >= _AT_ONCE:
            raise _Away(f"{_AT_ONCE} requests are waiting for it")
        self._under_way += 1
        try:
            body = b""
            async with (
                asyncio.timeout(2 * _TIMEOUT),  # the client's timeout is for each read only
                httpx.AsyncClient(timeout=_TIMEOUT, headers={"accept": "application/json"}) as client,
                client.stream(method, url, data=form, headers=headers) as answer,
            ):
                async for piece in answer.aiter_bytes():
                    body += piece
                    if len(body) > _LONGEST:
                        raise _Away(f"{url}: more than {_LONGEST} bytes")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _Away(f"{url}: {str(error) or type(error).__name__}") from error
        except TimeoutError as error:
            raise _Away(f"{url}: no whole answer in {2 * _TIMEOUT:g} s") from error
        finally:
            self._under_way -= 1
        if method == "POST" and 400 <= answer.status_code < 500:
            raise _Refused(f"{url}: {answer.status_code} {body[:200].decode(errors='replace')}")
        if answer.status_code != 200:
            raise _Away(f"{url}: {answer.status_code}")
        try:
            return msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _Away(f"{url}: no JSON: {error}") from error

    def _verified(self, tokens: _Tokens, keys: _Keys, nonce: str) -> dict[str, Any]:
        """The claims of an ID token that is signed by its issuer, for us, for this login, and not too old.

        Raises _Refused.
        """
        from authlib.oidc.core import CodeIDToken
        from joserfc import jwt
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet
        from joserfc.jws import JWSRegistry

        mine = [key for key in keys.keys if key.get("kty") in ("RSA", "EC") and key.get("use", "sig") == "sig"]
        options: dict[str, Any] = {
            "iss": {"essential": True, "value": self._settings.issuer},
            "aud": {"essential": True, "value": self._settings.client},
        }
        params = {"nonce": nonce, "client_id": self._settings.client, "access_token": tokens.access_token}
        try:
            registry = JWSRegistry(algorithms=_ALGORITHMS, strict_check_header=False)
            token = jwt.decode(tokens.id_token, KeySet.import_key_set({"keys": mine}), registry=registry)
            claims = CodeIDToken(token.claims, token.header, options, params)
            claims.validate(int(self._context.now().timestamp()), _LEEWAY)
        except (JoseError, ValueError, TypeError, KeyError, RecursionError) as error:
            raise _Refused(f"ID token: {type(error).__name__} {error}") from error
        return dict(claims)

    def _provider_user(self, claims: dict[str, Any]) -> _ProviderUser:
        """The user in the claims. A name that people may choose is combined with the permanent subject. Raises
        _Refused.
        """
        subject, known = claims["sub"], claims.get("preferred_username")
        if not re.fullmatch(r"[!-~]{1,255}", subject):
            raise _Refused("sub: 1 to 255 printable characters")
        shown = re.sub(r"[^a-zA-Z0-9._@+-]", "_", known)[:64] if isinstance(known, str) else ""
        name = f"{OPENID}:{shown}:{subject}"
        said = claims.get(self._settings.role_claim)
        said = said if isinstance(said, list) else [said]
        roles = [role for role in ROLES if role in said]
        if len(roles) != 1:
            self._context.actions.note(name, "", "login.refused", "", {"sub": subject, "roles": roles})
            text = f"{name}: the claim {self._settings.role_claim} must hold one of {', '.join(ROLES)}"
            raise _Refused(text, "access.openid_role")
        return _ProviderUser(name, roles[0], subject)


def _safe(url: str) -> bool:
    """Whether the connection is protected: https, or loopback."""
    try:
        parts = urlsplit(url)
        if parts.scheme == "https":
            return bool(parts.hostname)
        return parts.scheme == "http" and ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:  # a host name, or no URL
        return False

"""Every error becomes a JSON object with a code; none holds a query, a user, or what was sent."""

from __future__ import annotations

import logging
from typing import Final, TypeVar

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse

from querycloak.errors import Busy, MethodNotAllowed, NotFound, QueryCloakError, Unavailable

T = TypeVar("T")
_log = logging.getLogger("querycloak.service")
#: What the framework finds out by itself.
_CODES: Final = {kind.http_status: kind.code for kind in (NotFound, MethodNotAllowed)}


def install(app: FastAPI) -> None:
    """Make the application answer errors this way."""
    app.add_exception_handler(QueryCloakError, _ours)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _plain)
    app.add_exception_handler(Exception, _unforeseen)


def answer(status: int, code: str, message: str, hint: str = "", wait: int = 0) -> JSONResponse:
    """Write an error as JSON."""
    headers = {"Retry-After": str(wait)} if wait else {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    body = {"error": {"code": code, "message": message} | ({"hint": hint} if hint else {})}
    return JSONResponse(body, status, headers)


def told(error: QueryCloakError) -> JSONResponse:
    """Write one of our own errors as JSON."""
    wait = error.retry_after if isinstance(error, Busy) else int(error.http_status == 503)
    return answer(error.http_status, error.code, error.message, error.hint, wait)


async def _ours(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, QueryCloakError)
    return told(error)


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]  # its `input` is what was sent, and stays unsaid
    if first["type"] == "extra_forbidden":  # so does a name that somebody made up
        return answer(422, "parameter", "one of the parameters is not known here")
    where = ".".join(str(part) for part in first["loc"])
    return answer(422, "parameter", f"`{where}`: {first['type'].replace('_', ' ')}")


async def _plain(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    code = _CODES.get(error.status_code, "http")
    response = answer(error.status_code, code, str(error.detail))
    response.headers.update(error.headers or {})
    return response


async def _unforeseen(request: Request, error: Exception) -> JSONResponse:
    _log.error("unforeseen fault", extra={"fault": type(error).__name__})
    return answer(500, "unforeseen", "something unforeseen went wrong; this is a fault in querycloak")


def unless(trouble: str, good: T) -> T:
    """Give the answer, or say with status 503 what is wrong."""
    if trouble:
        raise Unavailable(trouble)
    return good

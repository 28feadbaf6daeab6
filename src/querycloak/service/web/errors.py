"""Turns errors into JSON objects with a code; none contains a query, a user or any part of the request."""

from __future__ import annotations

import logging
from typing import Final

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse

from querycloak.errors import Busy, MethodNotAllowed, NotFound, QueryCloakError

_log = logging.getLogger("querycloak.service")
#: Codes of the errors that the framework raises itself.
_CODES: Final = {kind.http_status: kind.code for kind in (NotFound, MethodNotAllowed)}


def install(app: FastAPI) -> None:
    """Register the error handlers of an application."""
    app.add_exception_handler(QueryCloakError, _own_error)
    app.add_exception_handler(RequestValidationError, _invalid_parameter)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _unforeseen)


def _response(status: int, code: str, message: str, hint: str = "", retry_after: int = 0) -> JSONResponse:
    headers = {"Retry-After": str(retry_after)} if retry_after else {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    body = {"error": {"code": code, "message": message} | ({"hint": hint} if hint else {})}
    return JSONResponse(body, status, headers)


def to_response(error: QueryCloakError) -> JSONResponse:
    """Return the response for an error; 429 and 503 have a `Retry-After` header."""
    wait = error.retry_after if isinstance(error, Busy) else int(error.http_status == 503)
    return _response(error.http_status, error.code, error.message, error.hint, wait)


async def _own_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, QueryCloakError)
    return to_response(error)


async def _invalid_parameter(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]  # its `input` is part of the request and is not repeated
    if first["type"] == "extra_forbidden":  # the unknown name is part of the request too
        return _response(422, "parameter", "a parameter is unknown")
    where = ".".join(str(part) for part in first["loc"])
    return _response(422, "parameter", f"`{where}`: {first['type'].replace('_', ' ')}")


async def _http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    code = _CODES.get(error.status_code, "http")
    response = _response(error.status_code, code, str(error.detail))
    response.headers.update(error.headers or {})
    return response


async def _unforeseen(request: Request, error: Exception) -> JSONResponse:
    _log.error("unforeseen error", extra={"fault": type(error).__name__})
    return _response(500, "unforeseen", "an unforeseen error occurred; this is a fault in querycloak")

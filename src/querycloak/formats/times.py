"""Parse times of every usual form to microseconds of UTC, and write them in the form they had."""

from __future__ import annotations

import re
from typing import Final

import polars as pl

TIME: Final = pl.Datetime("us", "UTC")
PLAIN: Final = "YYYY-MM-DD HH:MM:SS"
RFC3339: Final = "YYYY-MM-DDTHH:MM:SSZ"
#: Parquet keeps times as such; their type stands in `Layout.types`.
NATIVE: Final = "datetime"

_CLOCK = r"\d{4}-\d{2}-\d{2}[ T][0-2]\d:[0-5]\d:[0-5]\d"
_ZONE = r"(?:[Zz]|[+-]\d{2}(?::?\d{2})?)"
_TEXT = rf"^(?-u){_CLOCK}(?:\.\d{{1,9}})?{_ZONE}?$"
_EPOCH = r"^(?-u)\d{1,17}(?:\.\d+)?$"
_STYLE = re.compile(rf"({_CLOCK})(?:\.(\d{{1,9}}))?({_ZONE})?", re.ASCII)
#: (digits at most, unit, microseconds in it, digits of a fraction that count)
_UNITS: Final = ((11, "s", 1_000_000, 6), (14, "ms", 1_000, 3), (17, "us", 1, 0))
#: Numbers outside these times (1980 to 2100) are no times: a date such as 20060301 is not a second of 1970.
_EARLIEST: Final = 315_532_800_000_000
_LATEST: Final = 4_102_444_800_000_000


def parse(texts: pl.Series) -> pl.Series:
    """Parse times; a text that is no time becomes null. Times without a zone are UTC."""
    column = pl.col(texts.name)
    shape, form = _quick_form(texts)
    quick = pl.when(column.str.contains(shape)).then(column)
    plain = quick.str.to_datetime(form, time_unit="us", strict=False)
    times = texts.to_frame().select(plain.dt.replace_time_zone("UTC")).to_series()
    if times.null_count() > texts.null_count():
        unusual = times.is_null() & texts.is_not_null()
        times = times.scatter(unusual.arg_true(), _parse_any(texts.filter(unusual)))
    return _within_calendar(times)


def _quick_form(texts: pl.Series) -> tuple[str, str]:
    """Guess the usual form from the first text: most logs have one form throughout."""
    first = next(iter(texts.drop_nulls().head(1)), "")
    between = "T" if first[10:11] == "T" else " "
    end = "Z" if first[19:] == "Z" else ""
    shape = rf"^(?-u)\d{{4}}-\d{{2}}-\d{{2}}{between}[0-2]\d:[0-5]\d:[0-5]\d{end}$"
    return shape, f"%Y-%m-%d{between}%H:%M:%S{end}"


def _parse_any(texts: pl.Series) -> pl.Series:
    text = pl.col(texts.name)
    written = pl.when(text.str.contains(_TEXT)).then(text).str.replace(" ", "T", literal=True)
    zoned = (
        pl.when(written.str.contains(r"T.*[Zz+-]"))
        .then(written.str.replace("z", "Z", literal=True).str.replace(r"([+-]\d{2})$", "${1}:00"))
        .otherwise(written + "Z")
    )
    stamp = zoned.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f%#z", time_unit="us", time_zone="UTC", strict=False)
    return texts.to_frame().select(pl.coalesce(stamp, _epoch(text)).alias(texts.name)).to_series()


def _epoch(text: pl.Expr) -> pl.Expr:
    """Parse seconds, milliseconds or microseconds since 1970; the number of digits decides which."""
    number = pl.when(text.str.contains(_EPOCH)).then(text)
    digits = number.str.extract(r"^0*(\d+)").str.len_bytes()
    whole = number.str.extract(r"^(\d+)").cast(pl.Int64, strict=False)
    fraction = number.str.extract(r"\.(\d+)").fill_null("").str.pad_end(6, "0")
    choices = [
        pl.when(digits <= most).then(
            whole * size + (fraction.str.slice(0, kept).cast(pl.Int64, strict=False).fill_null(0))
        )
        for most, _, size, kept in _UNITS
    ]
    micros = pl.coalesce(choices)
    plausible = pl.when(micros.is_between(_EARLIEST, _LATEST, closed="left")).then(micros)
    return plausible.cast(pl.Datetime("us")).dt.replace_time_zone("UTC")


def _within_calendar(times: pl.Series) -> pl.Series:
    """Drop years that have no four digits: most programs cannot hold them."""
    span = times.dt.year()
    if times.null_count() == len(times) or (span.min() >= 1 and span.max() <= 9999):  # type: ignore[operator]
        return times
    return times.set(~span.is_between(1, 9999), None)


def native(times: pl.Series) -> pl.Series:
    """Convert a column of dates or datetimes, of any unit and zone, to `TIME`."""
    if times.dtype == pl.Date:
        times = times.cast(pl.Datetime("us"))
    zone = getattr(times.dtype, "time_zone", None)
    utc = times.dt.convert_time_zone("UTC") if zone else times.dt.replace_time_zone("UTC")
    return utc.cast(TIME)


def is_style(style: str) -> bool:
    """Check whether `write` can write a style."""
    return style.startswith(("YYYY", "epoch "))


def style_of(text: str) -> str:
    """Return how a readable time is written, for example `YYYY-MM-DDTHH:MM:SS.fff+02:00`."""
    found = _STYLE.fullmatch(text)
    if found:
        clock = PLAIN.replace(" ", found[1][10])
        fraction = "." + "f" * min(len(found[2]), 6) if found[2] else ""
        return clock + fraction + (found[3] or "").upper()
    digits = len(text.partition(".")[0].lstrip("0"))
    return "epoch " + next(unit for most, unit, _, _ in _UNITS if digits <= most)


def write(times: pl.Series, style: str) -> pl.Series:
    """Write times in a style as texts, never less precise than the values."""
    if style.startswith("epoch "):
        return _write_epoch(times, style.removeprefix("epoch "))
    clock, zone = style[:19], style[19:].lstrip(".f")
    digits = style[19:].count("f")
    local = times.cast(pl.Int64) + _offset(zone)
    form = "%Y-%m-%d" + clock[10] + "%H:%M:%S"
    text = local.cast(pl.Datetime("us")).dt.to_string(form)
    micros = local % 1_000_000
    if digits or (micros != 0).any():
        text = text + _fraction(micros, 6, digits)
    return text + zone if zone else text


def _offset(zone: str) -> int:
    if zone in ("", "Z"):
        return 0
    sign = -1 if zone[0] == "-" else 1
    return sign * (int(zone[1:3]) * 60 + int(zone[-2:] if len(zone) > 3 else 0)) * 60_000_000


def _fraction(parts: pl.Series, width: int, least: int) -> pl.Series:
    """Write what follows the point: as many digits as the value needs, at least `least`."""
    padded = parts.cast(pl.String).str.zfill(width)
    digits = padded.str.slice(0, least) + padded.str.slice(least).str.strip_chars_end("0")
    return pl.select(pl.when(digits != "").then("." + digits).otherwise(digits)).to_series()


def _write_epoch(times: pl.Series, unit: str) -> pl.Series:
    """Write numbers; a time that would not be read as a number is written as RFC 3339."""
    size, kept = next((size, kept) for _, name, size, kept in _UNITS if name == unit)
    micros = times.cast(pl.Int64)
    text = (micros // size).cast(pl.String) + _fraction(micros % size, kept, 0)
    plausible = micros.is_between(_EARLIEST, _LATEST, closed="left")
    if plausible.all():
        return text
    return pl.select(pl.when(plausible).then(text).otherwise(write(times, RFC3339))).to_series()

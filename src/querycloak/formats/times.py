"""Times in every form that logs use, as microseconds of UTC and back in the form they came in."""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from querycloak.errors import DataError

TIME: Final = pl.Datetime("us", "UTC")
PLAIN: Final = "YYYY-MM-DD HH:MM:SS"
RFC3339: Final = "YYYY-MM-DDTHH:MM:SSZ"
EXCITE: Final = "yymmddHHMMSS"
#: Parquet keeps times as such; their type stands in `Layout.types`.
NATIVE: Final = "datetime"

_CLOCK = r"\d{4}-\d{2}-\d{2}[ T][0-2]\d:[0-5]\d:[0-5]\d"
_ZONE = r"(?:[Zz]|[+-]\d{2}(?::?\d{2})?)"
_TEXT = rf"^(?-u){_CLOCK}(?:\.\d{{1,9}})?{_ZONE}?$"
_EPOCH = r"^(?-u)-?\d{1,17}(?:\.\d+)?$"
_STYLE = re.compile(rf"({_CLOCK})(?:\.(\d{{1,9}}))?({_ZONE})?", re.ASCII)
#: (digits at most, unit, microseconds in it, digits of a fraction that count)
_UNITS: Final = ((11, "s", 1_000_000, 6), (14, "ms", 1_000, 3), (17, "us", 1, 0))


def parse(texts: pl.Series) -> pl.Series:
    """Read times from texts; what is no time becomes null. Naive times are UTC."""
    column = pl.col(texts.name)
    shape, form = _quick_form(texts)
    quick = pl.when(column.str.contains(shape)).then(column)
    plain = quick.str.to_datetime(form, time_unit="us", strict=False)
    times = texts.to_frame().select(plain.dt.replace_time_zone("UTC")).to_series()
    if times.null_count() > texts.null_count():
        odd = texts.filter(times.is_null() & texts.is_not_null())
        if not odd.is_empty():
            times = _fill(times, texts, _parse_any(odd))
    return _within_calendar(times)


def _quick_form(texts: pl.Series) -> tuple[str, str]:
    """Guess the usual form from the first text: most logs have one form throughout."""
    first = next(iter(texts.drop_nulls().head(1)), "")
    between = "T" if first[10:11] == "T" else " "
    end = "Z" if first[19:] == "Z" else ""
    shape = rf"^(?-u)\d{{4}}-\d{{2}}-\d{{2}}{between}[0-2]\d:[0-5]\d:[0-5]\d{end}$"
    return shape, f"%Y-%m-%d{between}%H:%M:%S{end}"


def parse_excite(texts: pl.Series) -> pl.Series:
    """Read `yymmddHHMMSS`; years 70 to 99 are of the twentieth century."""
    text = pl.when(pl.col(texts.name).str.contains(r"^(?-u)\d{8}[0-5]\d[0-5]\d$")).then(pl.col(texts.name))
    century = pl.when(text.str.slice(0, 2) >= "70").then(pl.lit("19")).otherwise(pl.lit("20"))
    times = (century + text).str.to_datetime("%Y%m%d%H%M%S", time_unit="us", strict=False)
    return texts.to_frame().select(times.dt.replace_time_zone("UTC").alias(texts.name)).to_series()


def _fill(times: pl.Series, texts: pl.Series, found: pl.Series) -> pl.Series:
    """Put the times found for the odd texts where these stand."""
    places = (times.is_null() & texts.is_not_null()).arg_true()
    return times.clone().scatter(places, found)


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
    """Read seconds, milliseconds or microseconds since 1970, told apart by their size."""
    number = pl.when(text.str.contains(_EPOCH)).then(text.str.strip_prefix("-"))
    digits = number.str.extract(r"^0*(\d+)").str.len_bytes()
    whole = number.str.extract(r"^(\d+)").cast(pl.Int64, strict=False)
    fraction = number.str.extract(r"\.(\d+)").fill_null("").str.pad_end(6, "0")
    sign = pl.when(text.str.starts_with("-")).then(-1).otherwise(1)
    choices = [
        pl.when(digits <= most).then(
            whole * size + (fraction.str.slice(0, kept).cast(pl.Int64, strict=False).fill_null(0))
        )
        for most, _, size, kept in _UNITS
    ]
    return (sign * pl.coalesce(choices)).cast(pl.Datetime("us")).dt.replace_time_zone("UTC")


def _within_calendar(times: pl.Series) -> pl.Series:
    """Drop years that have no four digits: most programs cannot hold them."""
    span = times.dt.year()
    if times.null_count() == len(times) or (span.min() >= 1 and span.max() <= 9999):  # type: ignore[operator]
        return times
    return times.set(~span.is_between(1, 9999), None)


def native(times: pl.Series) -> pl.Series:
    """Turn a column of dates or datetimes, of any unit and zone, into ours."""
    if times.dtype == pl.Date:
        times = times.cast(pl.Datetime("us"))
    zone = getattr(times.dtype, "time_zone", None)
    utc = times.dt.convert_time_zone("UTC") if zone else times.dt.replace_time_zone("UTC")
    return utc.cast(TIME)


def style_of(text: str) -> str:
    """Describe how a readable time is written, for example `YYYY-MM-DDTHH:MM:SS.fff+02:00`."""
    found = _STYLE.fullmatch(text)
    if found:
        clock = PLAIN.replace(" ", found[1][10])
        fraction = "." + "f" * min(len(found[2]), 6) if found[2] else ""
        return clock + fraction + (found[3] or "").upper()
    digits = len(text.partition(".")[0].lstrip("-0"))
    return "epoch " + next(unit for most, unit, _, _ in _UNITS if digits <= most)


def write(times: pl.Series, style: str, first: int = 0) -> pl.Series:
    """Write times in a style as texts, never less precise than the values; `first` numbers the rows."""
    if style == EXCITE:
        return _write_excite(times, first)
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
    """Write numbers; a time whose number would be taken for another unit is written in words."""
    place = next(i for i, (_, name, _, _) in enumerate(_UNITS) if name == unit)
    most, _, size, kept = _UNITS[place]
    least = _UNITS[place - 1][0] if place else 0
    micros = times.cast(pl.Int64)
    whole = micros.abs() // size
    sign = pl.select(pl.when(micros < 0).then(pl.lit("-")).otherwise(pl.lit(""))).to_series()
    text = sign + whole.cast(pl.String) + _fraction(micros.abs() % size, kept, 0)
    fits = (whole < 10**most) & ((whole >= 10**least) | (least == 0))
    if fits.all():
        return text
    return pl.select(pl.when(fits).then(text).otherwise(write(times, RFC3339))).to_series()


def _write_excite(times: pl.Series, first: int) -> pl.Series:
    wrong = (times.dt.microsecond() != 0) | ~times.dt.year().is_between(1970, 2069)
    if wrong.any():
        row = first + int(wrong.fill_null(False).arg_true()[0])
        raise DataError(
            f"output row {row}: the format excite cannot hold the column `time` of this row",
            hint="it has no fractions of seconds, and years from 1970 to 2069 only; choose another format",
        )
    return times.dt.to_string("%y%m%d%H%M%S")

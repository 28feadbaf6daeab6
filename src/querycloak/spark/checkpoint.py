"""Folders of a query on any file system: private checkpoints, and checks that folders belong together."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from querycloak.errors import DataError, Refused
from querycloak.spark.session import translate_errors

#: The file in a checkpoint, beside Spark's own, that says what it was started with.
NOTE: Final = "querycloak.json"
#: Prefix of the mark by which the driver recognises the plan of a state.
MARKED: Final = "querycloak_stream_"
_ANEW: Final = "take a new checkpoint, another folder for what leaves, and another `source`"
#: Spark's logs have a file for each micro-batch; now and then one stands for all before it.
_NUMBER: Final = re.compile(r"(\d+)(?:\.compact)?")


class Folder:
    """A folder as Spark sees it: on this machine, or on any file system that Spark knows."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        with translate_errors():
            self._new: Any = spark._jvm.org.apache.hadoop.fs.Path  # type: ignore[union-attr]
            self._path = self._new(path)
            self._files = self._path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())

    @property
    def local(self) -> Path | None:
        """Return its path if it is on this machine, else None."""
        found = self._files.makeQualified(self._path).toUri()
        return Path(found.getPath()) if found.getScheme() == "file" else None

    def newest(self, name: str) -> int:
        """Return the number of the newest micro-batch in one of Spark's logs, or -1."""
        with translate_errors():
            log = self._new(self._path, name)
            files = self._files.listStatus(log) if self._files.exists(log) else []
            found = (_NUMBER.fullmatch(file.getPath().getName()) for file in files)
            return max((int(number[1]) for number in found if number), default=-1)

    def read(self, name: str) -> str | None:
        """Read a small file, if it is there."""
        with translate_errors():
            place = self._new(self._path, name)
            if not self._files.exists(place):
                return None
            stream = self._files.open(place)
            try:
                return bytes(stream.readAllBytes()).decode()
            finally:
                stream.close()

    def write(self, name: str, text: str) -> None:
        """Write a small file, over what is there."""
        with translate_errors():
            stream = self._files.create(self._new(self._path, name), True)
            stream.write(bytearray(text.encode()))
            stream.close()


def make_private(folder: Path) -> None:
    """Create a folder with mode 0700; refuse a used one that others can read."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not stat.S_IMODE(folder.stat().st_mode) & 0o077:
        return
    if any(folder.iterdir()):
        raise Refused(
            "other users of this machine can read the folder of the checkpoint, which contains raw records",
            hint="make it private (`chmod 700`), or name a new one",
        )
    folder.chmod(0o700)


def check_settled(checkpoint: Folder) -> None:
    """Refuse a checkpoint whose last micro-batch may be in the sink, while the state is that before it."""
    begun, done = checkpoint.newest("offsets"), checkpoint.newest("commits")
    if done < 0:
        raise DataError("the checkpoint holds no records", hint="is it that of a query that has run?")
    if begun > done:
        raise Refused(
            f"the query stopped within micro-batch {begun}: what that released may be written already",
            hint='start it once more with `trigger={"availableNow": True}` and let it end by itself',
        )


def check_sink(folder: Folder, checkpoint: Folder) -> None:
    """Refuse a folder of another query: Spark's sink skips micro-batches whose numbers it has."""
    if folder.newest("_spark_metadata") > checkpoint.newest("offsets"):
        raise Refused(
            "the folder holds what a query with another checkpoint wrote, and Spark would leave out "
            "micro-batches of this one",
            hint="write to another folder",
        )


def marks_of(released: DataFrame) -> list[str]:
    """Return the marks of the streams that a DataFrame derives from."""
    plan = released._jdf.queryExecution().analyzed().toString()
    return sorted(set(re.findall(rf"{MARKED}([0-9a-f]+)", plan)))


def keep_note(checkpoint: Folder, facts: Mapping[str, Any]) -> None:
    """Store what a new checkpoint is started with; refuse a different value later, before any read."""
    if checkpoint.newest("offsets") < 0:  # until then nothing depends on it
        checkpoint.write(NOTE, json.dumps(facts, sort_keys=True))
        return
    found = checkpoint.read(NOTE)
    if found is None:
        raise Refused("the checkpoint was started by another program, or by hand", hint=_ANEW)
    check_note(json.loads(found), facts)


def check_note(was: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Compare what a checkpoint was started with."""
    different = [name for name in sorted({*was, *now}) if was.get(name) != now.get(name)]
    if "marks" in different:
        raise other_plan()
    for name in different:
        raise Refused(
            f"the checkpoint was started with `{name}={was.get(name)}`, and now it is `{now.get(name)}`",
            hint=f"use the same again, or {_ANEW}",
        )


def other_plan() -> Refused:
    """Return the error for a state of other methods, settings or secrets."""
    return Refused(
        "the checkpoint was written with other methods, settings, columns, lanes, or another secret",
        hint=f"use the same again, or {_ANEW}",
    )

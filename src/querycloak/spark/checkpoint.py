"""Looks into the folders of a query, wherever they are, and refuses those that do not fit together."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from querycloak.errors import DataError, Refused
from querycloak.spark.faults import told_plainly

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: What the driver keeps in a checkpoint beside Spark's own files: what it was begun with.
NOTE: Final = "querycloak.json"
#: How a plan tells the driver whose state it keeps; the mark follows.
MARKED: Final = "querycloak_stream_"
_ANEW: Final = "take a new checkpoint, another folder for what leaves, and another `source`"
#: Spark's logs have a file for each micro-batch; now and then one stands for all before it.
_NUMBER: Final = re.compile(r"(\d+)(?:\.compact)?")


class Folder:
    """A folder as Spark sees it: on this machine, or on any file system that Spark knows."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        with told_plainly():
            self._new: Any = spark._jvm.org.apache.hadoop.fs.Path  # type: ignore[union-attr]
            self._path = self._new(path)
            self._files = self._path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())

    @property
    def local(self) -> Path | None:
        """Give its path on this machine, if that is where it is."""
        found = self._files.makeQualified(self._path).toUri()
        return Path(found.getPath()) if found.getScheme() == "file" else None

    def newest(self, name: str) -> int:
        """Give the number of the newest micro-batch that one of Spark's logs in it knows, or -1."""
        with told_plainly():
            log = self._new(self._path, name)
            files = self._files.listStatus(log) if self._files.exists(log) else []
            found = (_NUMBER.fullmatch(file.getPath().getName()) for file in files)
            return max((int(number[1]) for number in found if number), default=-1)

    def read(self, name: str) -> str | None:
        """Read a small file, if it is there."""
        with told_plainly():
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
        with told_plainly():
            stream = self._files.create(self._new(self._path, name), True)
            stream.write(bytearray(text.encode()))
            stream.close()


def make_private(folder: Path) -> None:
    """Make a folder that only its owner can read; refuse one that others can, if it is in use already."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not stat.S_IMODE(folder.stat().st_mode) & 0o077:
        return
    if any(folder.iterdir()):
        raise Refused(
            "others on this machine can look into the folder of the checkpoint, and raw records wait in it",
            hint="make it yours alone (`chmod 700`), or name one that is not there yet",
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
    """Refuse a folder of another query: Spark's sink leaves out micro-batches whose numbers it has."""
    if folder.newest("_spark_metadata") > checkpoint.newest("offsets"):
        raise Refused(
            "the folder holds what a query with another checkpoint wrote, and Spark would leave out "
            "micro-batches of this one",
            hint="write to another folder",
        )


def marks_of(released: DataFrame) -> list[str]:
    """Find the marks of the streams that a DataFrame is made of, whatever was done to it since."""
    plan = released._jdf.queryExecution().analyzed().toString()
    return sorted(set(re.findall(rf"{MARKED}([0-9a-f]+)", plan)))


def keep_note(checkpoint: Folder, told: Mapping[str, Any]) -> None:
    """Write down what a checkpoint is begun with; later refuse anything else, before a record is read."""
    if checkpoint.newest("offsets") < 0:  # until then nothing depends on it
        checkpoint.write(NOTE, json.dumps(told, sort_keys=True))
        return
    found = checkpoint.read(NOTE)
    if found is None:
        raise Refused("the checkpoint was begun by another program, or by hand", hint=_ANEW)
    check_note(json.loads(found), told)


def check_note(was: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Compare what a checkpoint was begun with."""
    different = [name for name in sorted({*was, *now}) if was.get(name) != now.get(name)]
    if "marks" in different:
        raise other_plan()
    for name in different:
        raise Refused(
            f"the checkpoint was begun with `{name}={was.get(name)}`, and now it is `{now.get(name)}`",
            hint=f"use the same again, or {_ANEW}",
        )


def other_plan() -> Refused:
    """Say that a state was left by other methods, settings or secrets."""
    return Refused(
        "the checkpoint was written with other methods, settings, columns, lanes, or another secret",
        hint=f"use the same again, or {_ANEW}",
    )

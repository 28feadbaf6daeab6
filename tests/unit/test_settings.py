from __future__ import annotations

from dataclasses import dataclass

import pytest

from querycloak import settings
from querycloak.errors import ParameterError, UnknownName
from querycloak.settings import setting


class Toy:
    @dataclass(frozen=True, kw_only=True)
    class Settings(settings.Settings):
        k: int = setting(5, kind=int, at_least=2, at_most=9, help="people")
        share: float = setting(0.5, kind=float, at_least=0, help="a share")
        level: int = setting(1, kind=int, at_least=1, also=("auto",), help="a level")
        mode: str = setting("a", kind=str, choices=("a", "b"), help="a mode")
        loud: bool = setting(False, kind=bool, help="a switch")


def test_every_fault_is_told_in_one_go_and_names_its_owner():
    with pytest.raises(ParameterError) as caught:
        Toy.Settings(k=1, share=float("nan"), mode="c")
    assert caught.value.message.splitlines() == [
        "Toy: `k` must be int, at least 2, at most 9; got 1",
        "Toy: `share` must be float, at least 0; got nan",
        "Toy: `mode` must be one of a, b; got 'c'",
    ]


@pytest.mark.parametrize("wrong", [True, "3", 2.5, None, object()])
def test_what_is_not_an_int_is_no_int(wrong):
    with pytest.raises(ParameterError):
        Toy.Settings(k=wrong)


def test_texts_are_read_by_the_declared_kind():
    read = Toy.Settings.parse({"k": "3", "share": "1", "level": "auto", "mode": "b", "loud": "yes"})
    assert read == Toy.Settings(k=3, share=1.0, level="auto", mode="b", loud=True)


@pytest.mark.parametrize(
    ("name", "text"), [("k", "many"), ("share", "x"), ("level", "deep"), ("loud", "maybe")]
)
def test_a_text_that_cannot_be_read_is_refused_by_the_check(name, text):
    with pytest.raises(ParameterError, match=f"`{name}` must be"):
        Toy.Settings.parse({name: text})


def test_an_unknown_setting_is_refused_with_the_nearest_name():
    with pytest.raises(UnknownName) as caught:
        Toy.Settings.parse({"shar": "1"})
    assert caught.value.hint == "did you mean `share`?"


def test_declarations_describe_every_setting():
    declared = {each["name"]: each for each in Toy.Settings.declarations()}
    assert declared["level"]["allowed"] == "int, at least 1 or auto"
    assert declared["mode"]["choices"] == ["a", "b"]
    assert declared["loud"]["default"] is False


def test_a_certificate_names_a_file_without_its_folder():
    @dataclass(frozen=True, kw_only=True)
    class WithFile(settings.Settings):
        words: str = setting("", kind=str, file=True, help="a file")
        text: str = setting("a/b", kind=str, help="no file")

    assert WithFile().as_dict() == {"words": "", "text": "a/b"}
    assert WithFile(words="/home/anna/names.txt").as_dict()["words"] == "names.txt"

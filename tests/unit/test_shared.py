"""The small shared modules: errors, registry, keys, dictionary, ledger, certificate."""

from __future__ import annotations

import json
import os
import stat

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querycloak import certificate, errors
from querycloak.dictionary import CategoryDictionary, Dictionary, fingerprint
from querycloak.errors import DataError, UnknownName, UsageError
from querycloak.guarantee import Finding, Guarantee, verdict_of
from querycloak.keys import Secret, derive, release_key, stage_key
from querycloak.ledger import Ledger
from querycloak.registry import METHODS, Registry


def _all_errors():
    found = [errors.QueryCloakError]
    for kind in found:
        found.extend(kind.__subclasses__())
    return found


def test_every_error_has_a_code_of_its_own_and_fitting_statuses():
    kinds = _all_errors()
    assert len({kind.code for kind in kinds}) == len(kinds)
    assert {kind.exit_status for kind in kinds} <= {2, 3, 4}
    assert all(400 <= kind.http_status < 600 for kind in kinds)


def test_an_error_shows_its_hint_after_a_blank_line():
    assert str(UsageError("no", hint="try")) == "no\n\nhint: try"
    assert "pip install 'querycloak[nlp]'" in str(errors.MissingExtra("nlp", "this"))


def test_an_unknown_method_is_refused_with_the_nearest_name():
    with pytest.raises(UnknownName, match="did you mean `rules`"):
        METHODS.get("rule")


def test_a_plugin_cannot_replace_a_built_in_part():
    registry = Registry(kind="thing", group="querycloak.nothing", built_in={"a": "json:dumps"})
    with pytest.raises(UnknownName, match="built in"):
        registry.add("a", object())
    registry.add("b", 7)
    assert (registry.names(), registry.get("b"), registry.get("a")) == (["a", "b"], 7, json.dumps)


def test_keys_differ_by_everything_that_goes_into_them():
    secret = Secret.from_seed(1)
    keys = {
        release_key(secret, "web", "1"),
        release_key(secret, "web", "2"),
        release_key(secret, "we", "b1"),
        release_key(Secret.from_seed(2), "web", "1"),
        stage_key(b"x" * 32, 0, "rules", {"k": 1}),
        stage_key(b"x" * 32, 0, "rules", {"k": 2}),
        stage_key(b"x" * 32, 1, "rules", {"k": 1}),
    }
    assert len(keys) == 7


def test_neighbouring_parts_of_a_purpose_never_run_together():
    assert derive(b"k" * 32, "ab", "c") != derive(b"k" * 32, "a", "bc")


def test_a_seed_is_not_publishable_and_the_secret_is_not_shown(tmp_path):
    assert not Secret.choose(seed=3).publishable
    assert Secret.choose().publishable
    file = tmp_path / "secret"
    file.write_bytes(b"0123456789abcdef")
    file.chmod(0o600)
    assert Secret.choose(file=file).origin == "file"
    assert "0123" not in repr(Secret.choose(file=file))
    file.write_bytes(b"short")
    with pytest.raises(UsageError, match="fewer than 16 bytes"):
        Secret.choose(file=file)


texts = st.lists(st.none() | st.text(max_size=5), max_size=30)


@given(first=texts, second=texts)
def test_codes_spell_out_again_over_pieces(first, second):
    dictionary = Dictionary()
    for piece in (first, second):
        series = pl.Series(piece, dtype=pl.String)
        codes = dictionary.encode(series)
        assert dictionary.decode(codes).to_list() == piece
    known = [text for text in first if text is not None]
    again = dictionary.intern(known)
    assert dictionary.decode(again).to_list() == known


def test_fingerprints_belong_to_the_text_not_to_the_order():
    one, other = Dictionary(), Dictionary()
    a, b = one.intern(["x", "y"]), other.intern(["y", "x"])
    assert one.fingerprints(a, b"k").tolist() == other.fingerprints(b, b"k").tolist()[::-1]
    more = one.intern(["z"])
    assert one.fingerprints(more, b"k").tolist() == fingerprint(["z"], b"k").tolist()
    assert one.fingerprints(a, b"k").tolist() != one.fingerprints(a, b"l").tolist()


def test_paths_are_cut_to_a_level():
    paths = CategoryDictionary()
    codes = np.append(paths.intern(["A/B/C", "A/B", "A", "D/E"]), -1)
    assert paths.decode(paths.at_level(codes, 2)).to_list() == ["A/B", "A/B", "A", "D/E", None]
    assert paths.depths(codes).tolist() == [3, 2, 1, 2, 0]


def test_the_ledger_is_a_chain_of_which_only_the_end_can_be_cut_off(tmp_path):
    ledger = Ledger(tmp_path / "state")
    first = ledger.append({"source": "web", "release": "a"})
    second = ledger.append({"source": "shop", "release": "b"})
    assert (first["number"], second["number"], second["previous"]) == (1, 2, first["hash"])
    assert [entry["release"] for entry in ledger.of_source("web")] == ["a"]
    assert stat.S_IMODE(os.stat(ledger.path).st_mode) == 0o600
    text = ledger.path.read_text()
    ledger.path.write_text(text.splitlines()[0] + "\n")
    assert len(ledger.entries()) == 1
    ledger.path.write_text(text.replace('"a"', '"c"'))
    with pytest.raises(DataError, match="entry 1 does not fit"):
        ledger.entries()
    ledger.path.write_text(text.splitlines()[1] + "\n")
    with pytest.raises(DataError, match="entry 1 does not fit"):
        ledger.append({"source": "web"})
    ledger.path.write_text("nonsense\n")
    with pytest.raises(DataError, match="is not an entry"):
        ledger.entries()


def _certificate():
    findings = [Finding("a check", "kept")]
    guarantee = Guarantee("words", ("much",), ())
    part = certificate.judged(
        certificate.method_part("rules", {}, guarantee, {"words": ["a check"]}, findings), []
    )
    release = {"id": "x", "source": None, "sha256": "0" * 64, "layout": {}}
    return certificate.build(
        release=release,
        methods=[certificate.judged(part, [])],
        lineage=[],
        secret=Secret.from_seed(1),
        ledger=None,
    )


def test_a_certificate_fits_its_schema_and_says_what_may_be_published(tmp_path):
    path = tmp_path / "c.json"
    path.write_bytes(certificate.to_bytes(_certificate()))
    read = certificate.read(path)
    assert read["randomness"] == {"secret": "seed", "reproducible": True, "publishable": False}
    path.write_text(path.read_text().replace('"kept"', '"perhaps"', 1))
    with pytest.raises(DataError, match="does not fit its schema"):
        certificate.read(path)
    path.write_text("{")
    with pytest.raises(DataError, match="not JSON"):
        certificate.read(path)
    with pytest.raises(UsageError, match="no certificate"):
        certificate.read(tmp_path / "absent.json")


@pytest.mark.sign
def test_a_signature_fits_its_key_only(tmp_path):
    from cryptography.hazmat.primitives import serialization as how
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    def pair(name):
        key = Ed25519PrivateKey.generate()
        private, public = tmp_path / f"{name}.pem", tmp_path / f"{name}.pub"
        private.write_bytes(key.private_bytes(how.Encoding.PEM, how.PrivateFormat.PKCS8, how.NoEncryption()))
        public.write_bytes(
            key.public_key().public_bytes(how.Encoding.PEM, how.PublicFormat.SubjectPublicKeyInfo)
        )
        return private, public

    (mine, public), (_, other) = pair("mine"), pair("other")
    signed = certificate.sign(_certificate(), mine)
    assert certificate.signature_fault(signed, public) == ""
    assert "does not fit" in certificate.signature_fault(signed, other)
    assert "does not fit" in certificate.signature_fault(signed | {"audit": "broken"}, public)
    assert "not signed" in certificate.signature_fault(_certificate(), public)
    with pytest.raises(UsageError, match="public key"):
        certificate.signature_fault(signed, mine)
    with pytest.raises(UsageError, match="signing key"):
        certificate.sign(_certificate(), public)


def test_broken_beats_not_checkable_beats_kept():
    def of(*verdicts):
        return verdict_of([Finding("", verdict) for verdict in verdicts])

    assert of("kept", "broken", "not checkable") == "broken"
    assert of("not checkable", "kept") == "not checkable"
    assert of("not applicable", "kept") == "kept"
    assert of() == "not applicable"

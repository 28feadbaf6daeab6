"""ChaCha20 against the vectors of RFC 8439."""

from __future__ import annotations

import numpy as np
import pytest

from querycloak.kernels.exponential_mechanism import block, key_words

COUNTING = bytes(range(32))
NOUGHT = bytes(32)

#: RFC 8439, section 2.3.2, then appendix A.1, test vectors 1 to 5: key, counter, nonce, key stream.
VECTORS = [
    (COUNTING, 1, "000000090000004a00000000",
     "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
     "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"),
    (NOUGHT, 0, "000000000000000000000000",
     "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
     "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"),
    (NOUGHT, 1, "000000000000000000000000",
     "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
     "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f"),
    (bytes(31) + b"\x01", 1, "000000000000000000000000",
     "3aeb5224ecf849929b9d828db1ced4dd832025e8018b8160b82284f3c949aa5a"
     "8eca00bbb4a73bdad192b5c42f73f2fd4e273644c8b36125a64addeb006c13a0"),
    (b"\x00\xff" + bytes(30), 2, "000000000000000000000000",
     "72d54dfbf12ec44b362692df94137f328fea8da73990265ec1bbbea1ae9af0ca"
     "13b25aa26cb4a648cb9b9d1be65b2c0924a66c54d545ec1b7374f4872e99f096"),
    (NOUGHT, 0, "000000000000000000000002",
     "c2c64d378cd536374ae204b9ef933fcd1a8b2288b3dfa49672ab765b54ee27c7"
     "8a970e0e955c14f3a88e741b97c286f75f8fc299e8148362fa198a39531bed6d"),
]  # fmt: skip


def stream(key, counter, nonce, words):
    out = np.empty(words, np.uint32)
    for i in range(words // 16):
        part = out[16 * i : 16 * i + 16]
        block(key_words(key), np.uint32(counter + i), *np.frombuffer(nonce, "<u4"), part)
    return out.astype("<u4").tobytes()


@pytest.mark.parametrize(("key", "counter", "nonce", "wanted"), VECTORS)
def test_the_vectors_of_the_rfc(key, counter, nonce, wanted):
    assert stream(key, counter, bytes.fromhex(nonce), 16).hex() == wanted


def test_later_blocks_carry_on_where_earlier_ones_end():
    nonce = bytes(range(12))
    whole = stream(COUNTING, 5, nonce, 64)
    assert whole == b"".join(stream(COUNTING, 5 + i, nonce, 16) for i in range(4))
    assert len({whole[i : i + 64] for i in range(0, 256, 64)}) == 4


@pytest.mark.sign
def test_a_long_stream_is_that_of_another_library():
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

    nonce = bytes(range(7, 19))
    cipher = Cipher(ChaCha20(COUNTING, (3).to_bytes(4, "little") + nonce), mode=None).encryptor()
    assert cipher.update(bytes(64 * 50)) == stream(COUNTING, 3, nonce, 16 * 50)

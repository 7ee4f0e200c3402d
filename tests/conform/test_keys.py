import base64

from blueprint.conform.keys import ec_private_key


def test_a_key_is_an_rfc_5915_structure_on_p256():
    head, *lines, tail = ec_private_key().splitlines()
    assert (head, tail) == ("-----BEGIN EC PRIVATE KEY-----", "-----END EC PRIVATE KEY-----")
    der = base64.b64decode("".join(lines))
    assert der[:2] == bytes([0x30, len(der) - 2])
    assert der[2:7] == bytes.fromhex("0201010420")
    assert der[39:] == bytes.fromhex("a00a06082a8648ce3d030107")
    assert ec_private_key() != ec_private_key()

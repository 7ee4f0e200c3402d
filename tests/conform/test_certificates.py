"""Certificates that Go's webhook servers and the API server take."""

import datetime
import ssl

from cryptography import x509

from blueprint.conform.certificates import authority, issue


def test_a_server_is_trusted_by_its_authority_and_bears_its_names(tmp_path):
    made = authority(tmp_path, ("some-ca",))
    folder = issue(made, ("webhook.example.svc",))
    certificate = x509.load_pem_x509_certificate((folder / "tls.crt").read_bytes())
    certificate.verify_directly_issued_by(made.certificate)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost", "webhook.example.svc"]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
    ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))


def test_it_outlives_what_rotators_renew(tmp_path):
    made = authority(tmp_path)
    later = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=90)
    assert made.certificate.not_valid_after_utc > later


def test_keys_are_pkcs1_and_private(tmp_path):
    folder = issue(authority(tmp_path))
    assert (folder / "tls.key").read_text().startswith("-----BEGIN RSA PRIVATE KEY-----")
    assert (folder / "tls.key").stat().st_mode & 0o077 == 0

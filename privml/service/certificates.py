# SPDX-License-Identifier: Apache-2.0
"""A small authority for the parties of one collaboration: its certificate, and one for each party.

Keys are on the curve P-256, certificates X.509 with the party's name as subject alternative name. Organisations that
run an authority of their own use its certificates instead; nothing here is needed to check them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from privml.errors import ConfigError

AUTHORITY, AUTHORITY_KEY = "authority.pem", "authority.key"
# Clocks of the parties may differ by so much.
_CLOCK_SLACK = timedelta(minutes=5)
_LONGEST_NAME = 63
_MOST_DAYS = 3650
# What a file that is no certificate or key can lead to; a key may also be encrypted or of another kind.
_UNREADABLE = (OSError, ValueError, TypeError, AttributeError, UnsupportedAlgorithm, x509.InvalidVersion)


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate and its key, as files."""

    certificate: Path
    key: Path


def make_authority(folder: str | Path, name: str = "privml authority", days: int = 1825) -> Issued:
    """A new authority in ``folder``: authority.pem, which every party gets, and authority.key, which stays where
    certificates are issued. Raises ConfigError if there is one already."""
    folder, days = Path(folder), _checked_days(days)
    issued = Issued(folder / AUTHORITY, folder / AUTHORITY_KEY)
    _refuse_existing(issued)
    folder.mkdir(parents=True, exist_ok=True)
    key, subject = _new_key(), _subject(name)

    usage = {"key_cert_sign": True, "crl_sign": True}
    builder = _dated(subject, subject, key, days).add_extension(x509.BasicConstraints(True, 0), critical=True)
    _write(issued, builder.add_extension(_key_usage(**usage), critical=True), key, key)
    return issued


def issue(folder: str | Path, name: str, out: str | Path | None = None, days: int = 365) -> Issued:
    """A certificate for the party ``name``, signed by the authority in ``folder``; NAME.pem and NAME.key in ``out``
    (default: ``folder``). ``name``: letters, digits, hyphens and dots, as in a host's name. Raises ConfigError."""
    _check_name(name)
    folder, target, days = Path(folder), Path(out or folder), _checked_days(days)
    try:
        signer = x509.load_pem_x509_certificate((folder / AUTHORITY).read_bytes())
        signing = serialization.load_pem_private_key((folder / AUTHORITY_KEY).read_bytes(), None)
        if not isinstance(signing, (ec.EllipticCurvePrivateKey, rsa.RSAPrivateKey)):
            raise ValueError("its key is of another kind than those of certificates")
        authority = signer.subject
    except _UNREADABLE as error:
        raise ConfigError(f"no authority in {folder}: {error}; make one with `privml certs init folder=...`") from None
    issued = Issued(target / f"{name}.pem", target / f"{name}.key")
    _refuse_existing(issued)
    target.mkdir(parents=True, exist_ok=True)
    key = _new_key()
    usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    builder = (
        _dated(_subject(name), authority, key, days)
        .add_extension(x509.BasicConstraints(False, None), critical=True)
        .add_extension(_key_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    )
    _write(issued, builder, key, signing)
    return issued


def describe(file: str | Path) -> dict[str, str]:
    """What a certificate says: names, authority, validity and fingerprint. Raises ConfigError."""
    try:
        return _described(x509.load_pem_x509_certificate(Path(file).read_bytes()))
    except _UNREADABLE as error:
        raise ConfigError(f"{file} is not a certificate: {error}") from None


def _described(certificate: x509.Certificate) -> dict[str, str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        named = ", ".join(names.get_values_for_type(x509.DNSName))
    except x509.ExtensionNotFound:
        named = "(none: an authority)"
    left = certificate.not_valid_after_utc - datetime.now(timezone.utc)
    valid = f"{left.days} days left" if left > timedelta(0) else "expired"
    return {
        "names": named,
        "issued by": certificate.issuer.rfc4514_string(),
        "valid from": certificate.not_valid_before_utc.isoformat(sep=" ", timespec="minutes"),
        "valid until": f"{certificate.not_valid_after_utc.isoformat(sep=' ', timespec='minutes')} ({valid})",
        "SHA-256": certificate.fingerprint(hashes.SHA256()).hex(),
    }


def _check_name(name: str) -> None:
    plain = name.replace("-", "").replace(".", "")
    if not (0 < len(name) <= _LONGEST_NAME and plain.isascii() and plain.isalnum() and name[0].isalnum()):
        raise ConfigError(
            f"'{name}' is not a valid name of a party: letters, digits, hyphens and dots, at most 63 of them"
        )


def _checked_days(days: int) -> int:
    if not 1 <= days <= _MOST_DAYS:
        raise ConfigError(f"days must be from 1 to {_MOST_DAYS}, got {days}")
    return days


def _refuse_existing(issued: Issued) -> None:
    for file in (issued.certificate, issued.key):
        if file.exists():
            raise ConfigError(f"{file} already exists; remove it or choose another folder")


def _new_key() -> Any:
    return ec.generate_private_key(ec.SECP256R1())


def _subject(name: str) -> Any:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _key_usage(**granted: bool) -> Any:
    kinds = (
        "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
        "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
    )  # fmt: skip
    return x509.KeyUsage(**{kind: granted.get(kind, False) for kind in kinds})


def _dated(subject: Any, issuer: Any, key: Any, days: int) -> Any:
    now = datetime.now(timezone.utc)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SLACK)
        .not_valid_after(now + timedelta(days=days))
    )


def _write(issued: Issued, builder: Any, key: Any, signing: Any) -> None:
    certificate = builder.sign(signing, hashes.SHA256())
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    descriptor = os.open(issued.key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(secret)
    issued.certificate.write_bytes(certificate.public_bytes(pem))

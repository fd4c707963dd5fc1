"""What a process keeps out of its memory."""

import ssl

from lockstep_runtime.util.memory import without_default_certificates


def test_a_context_made_while_importing_trusts_no_certificate() -> None:
    with without_default_certificates():
        context = ssl.create_default_context()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.cert_store_stats()["x509"] == 0


def test_afterwards_contexts_read_certificates_as_before() -> None:
    read = ssl.SSLContext.load_default_certs
    with without_default_certificates():
        assert ssl.SSLContext.load_default_certs is not read
    assert ssl.SSLContext.load_default_certs is read

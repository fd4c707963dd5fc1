"""A process of services imports aiohttp and Faust without what it never uses, and everything else as ever."""

import subprocess
import sys

CHECKS = """
import ssl, sys
create = ssl.create_default_context
{before}
from lockstep_runtime.util.library_imports import import_for_services
import_for_services()
import aiohttp.connector, faust
from faust.serializers import codecs
verified = aiohttp.connector._SSL_CONTEXT_VERIFIED
assert verified.verify_mode is ssl.CERT_REQUIRED and verified.check_hostname, "it refuses, and never trusts"
assert ssl.create_default_context is create
{after}
import yaml
assert yaml.safe_load("a: 1") == {{"a": 1}}
"""


def run(before: str, after: str) -> None:
    code = CHECKS.format(before=before, after=after)
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_services_import_no_public_certificates_and_no_yaml() -> None:
    run("", "assert verified.cert_store_stats()['x509_ca'] == 0; assert 'yaml' not in sys.modules")


def test_what_was_imported_before_stays() -> None:
    run(
        "import yaml as first; import aiohttp.connector; known = aiohttp.connector._SSL_CONTEXT_VERIFIED",
        "assert sys.modules['yaml'] is first; assert verified is known",
    )

"""Imports of libraries without their large parts that no service uses.

Where certificates of public authorities are installed, that is 1.4 MiB of each process.
"""

import ssl
import sys
from importlib import import_module


def import_for_services() -> None:
    """Import aiohttp and Faust, without the certificates of public authorities and without PyYAML.

    aiohttp's client loads the certificates when it is imported. Without them it refuses each server by `https`. A
    service has no such client: call this in a process of services alone. Faust uses PyYAML for a codec, if it is
    installed. What was imported before stays as it is.
    """
    create, yaml = ssl.create_default_context, sys.modules.get("yaml")
    ssl.create_default_context = _trust_nobody  # type: ignore[assignment]  # while aiohttp is imported
    sys.modules["yaml"] = None  # type: ignore[assignment]  # so that an import of it fails
    try:
        for name in ("aiohttp.connector", "faust.serializers.codecs"):
            import_module(name)
    finally:
        ssl.create_default_context = create
        del sys.modules["yaml"]
        if yaml is not None:
            sys.modules["yaml"] = yaml


def _trust_nobody() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

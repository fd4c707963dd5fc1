"""The files of the front end, as they are in the package. Their folder is the only one that is read."""

import gzip
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType

from aiohttp import web

from lockstep_runtime.http.answers import page, refusal

FOLDER = Path(__file__).parent / "static"

FIRST_PAGE = "index.html"

CONTENT_TYPES: Mapping[str, str] = MappingProxyType(
    {
        ".css": "text/css; charset=utf-8",
        ".html": "text/html; charset=utf-8",
        ".ico": "image/x-icon",
        ".js": "text/javascript; charset=utf-8",
        ".json": "application/json; charset=utf-8",
        ".map": "application/json; charset=utf-8",
        ".md": "text/plain; charset=utf-8",
        ".mjs": "text/javascript; charset=utf-8",
        ".png": "image/png",
        ".svg": "image/svg+xml",
        ".txt": "text/plain; charset=utf-8",
        ".webmanifest": "application/manifest+json",
        ".woff2": "font/woff2",
    }
)
"""The types of files that are served, by their ending. Other files are not."""

PACKED = (".png", ".woff2")
"""Endings of files that compression does not make smaller."""

SAFE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")
"""Names of files: no part begins with a dot, so none leaves the folder."""


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file as it is served."""

    content_type: str
    body: bytes
    zipped: bytes
    """The body under gzip, or b"" if that is not smaller."""
    tag: str
    """The entity tag of the body."""


class StaticFiles:
    """The files of a folder. A file that changes is read again, so the front end has no build step and no restart."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._read: dict[str, tuple[tuple[int, int], StaticFile]] = {}

    def find(self, name: str) -> StaticFile | None:
        """Return a file by its name below the folder (`parts/table.js`), or None if it is not served."""
        content_type = CONTENT_TYPES.get(Path(name).suffix)
        if content_type is None or not SAFE_NAME.fullmatch(name):
            return None
        path = self._folder / name
        try:
            stamp = path.stat()
            state = (stamp.st_mtime_ns, stamp.st_size)
            if name not in self._read or self._read[name][0] != state:
                if not path.resolve().is_relative_to(self._folder.resolve()):
                    return None
                self._read[name] = state, _read_file(path, content_type)
        except OSError:
            return None
        return self._read[name][1]

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer a request for a file, or for the first page."""
        file = self.find(request.match_info.get("file", "") or FIRST_PAGE)
        if file is None:
            return refusal(HTTPStatus.NOT_FOUND)
        if file.tag in (tag.strip() for tag in request.headers.get("If-None-Match", "").split(",")):
            answer = page(HTTPStatus.NOT_MODIFIED, b"", file.content_type)
        elif file.zipped and "gzip" in request.headers.get("Accept-Encoding", ""):
            answer = page(HTTPStatus.OK, file.zipped, file.content_type)
            answer.headers["Content-Encoding"] = "gzip"
        else:
            answer = page(HTTPStatus.OK, file.body, file.content_type)
        # The browser asks each time whether it still has the present file, so a newer console is never half an old one.
        answer.headers.update({"Cache-Control": "no-cache", "ETag": file.tag, "Vary": "Accept-Encoding"})
        return answer


def _read_file(path: Path, content_type: str) -> StaticFile:
    body = path.read_bytes()
    zipped = b"" if path.suffix in PACKED else gzip.compress(body, mtime=0)
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    return StaticFile(content_type, body, zipped if len(zipped) < len(body) else b"", tag)

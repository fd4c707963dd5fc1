"""The address of the project. A fork changes `REPOSITORY` and runs `make docs`; everything else follows."""

from urllib.parse import urlsplit

REPOSITORY = "https://github.com/lockstep-kafka/lockstep"


def image_registry(repository: str) -> str:
    """Return the registry of a GitHub repository's packages, `ghcr.io/OWNER`, in lower case as registries want it."""
    owner = urlsplit(repository).path.split("/")[1]
    return f"ghcr.io/{owner.lower()}"


IMAGES = image_registry(REPOSITORY)
"""Registry and path before the name of each image: `IMAGES/lockstep-cli`."""


def page(path: str) -> str:
    """Return the address of a page of the repository, such as `docs/README.md`."""
    return f"{REPOSITORY}/blob/main/{path}"

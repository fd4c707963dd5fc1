"""What kio makes of our bytes, and which bytes it makes itself."""

from typing import Any

from kio.serial import entity_reader

from lockstep_kafka.messages.message_versions import NAMES, EncodedRequest, encode_entity, load_message


def read_back(request: EncodedRequest) -> Any:
    """Return the request as kio reads it, which must be all of it."""
    api = NAMES[request.api_key]
    data = b"".join(request.parts)
    entity, size = entity_reader(getattr(load_message(api, request.version, "request"), f"{api.title()}Request"))(
        data, 0
    )
    assert size == len(data)
    return entity


def written(entity: Any) -> bytes:
    """Return the bytes of a message."""
    return b"".join(encode_entity(entity).parts)

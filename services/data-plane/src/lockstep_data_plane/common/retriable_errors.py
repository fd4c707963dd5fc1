"""The exceptions that pass while a slot tries again."""

from __future__ import annotations

from aiokafka.errors import KafkaError

from lockstep_protocol.errors import RetriableError

RETRIABLE_ERRORS = (RetriableError, KafkaError, TimeoutError)
"""Lockstep's own category, and what aiokafka and asyncio raise when a broker does not answer."""

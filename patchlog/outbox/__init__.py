"""Patches on their way into a log: sent at once, or kept in a file until the service can be reached again."""

from patchlog.outbox.delivery import Delivery, DirectDelivery, OutboxDelivery
from patchlog.outbox.queue import Basis, ConflictPolicy, Outbox, QueuedPatch, QueueState, default_path
from patchlog.outbox.sending import deliver

__all__ = [
    "Basis",
    "ConflictPolicy",
    "Delivery",
    "DirectDelivery",
    "Outbox",
    "OutboxDelivery",
    "QueueState",
    "QueuedPatch",
    "default_path",
    "deliver",
]

"""Patches on their way into a log: sent at once, or kept in a file until the service can be reached again."""

from patchlog.outbox.delivery import Delivery, DirectDelivery, OutboxDelivery, deliver
from patchlog.outbox.queue import Outbox, QueuedPatch, default_path

__all__ = ["Delivery", "DirectDelivery", "Outbox", "OutboxDelivery", "QueuedPatch", "default_path", "deliver"]

"""Logs of a service over HTTP: the contract of `patchlog.log.contract` again, wherever the log is."""

from patchlog.client.logs import HttpLogStore, HttpPatchLog

__all__ = ["HttpLogStore", "HttpPatchLog"]

"""Logs of a service over HTTP: the contract of `patchlog.log.contract` again, for programs that block and others."""

from patchlog.client.async_logs import AsyncHttpLogStore, AsyncHttpPatchLog, AsyncLoggedPatch
from patchlog.client.logs import HttpLogStore, HttpPatchLog

__all__ = ["AsyncHttpLogStore", "AsyncHttpPatchLog", "AsyncLoggedPatch", "HttpLogStore", "HttpPatchLog"]

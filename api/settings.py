"""The settings of the service: from the command line, the environment (`PATCHLOG_…`), and a file, in that order."""

from __future__ import annotations

import ipaddress
import os
import re
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from patchlog.errors import UsageError

__all__ = ["CONFIG_VARIABLE", "Settings"]

CONFIG_VARIABLE: Final = "PATCHLOG_CONFIG"
_FILE: Final = "patchlog.toml"


_HOST: Final = re.compile(r"\*|(\*\.)?[a-z0-9_.-]+(:[0-9]+)?|\[[0-9a-f:.]+\](:[0-9]+)?")
_ORIGIN: Final = re.compile(r"\*|null|[a-z][a-z0-9+.-]*://[^/?#\s@]+")


def _divided(value: Any) -> Any:
    """The words of a text with commas between them."""
    return tuple(word for part in value.split(",") if (word := part.strip())) if isinstance(value, str) else value


_Words = Annotated[tuple[str, ...] | None, NoDecode, BeforeValidator(_divided)]


class Settings(BaseSettings):
    """What an operator can choose. `PATCHLOG_CONFIG` names the file; else it is `patchlog.toml`, where there is one."""

    model_config = SettingsConfigDict(env_prefix="PATCHLOG_", extra="forbid", frozen=True)

    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=8080, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    rdf_delta_port: int | None = Field(
        default=None, ge=0, le=65535, description="A port with RDF Delta's API at its root; else it is at /rdf-delta."
    )
    rdf_delta_client_days: float = Field(
        default=14, gt=0, description="How long truncation waits for a client of RDF Delta's API that does not come."
    )
    grpc_port: int | None = Field(
        default=None, ge=0, le=65535, description="A port for gRPC; 0 takes a free one. Without it there is none."
    )
    grpc_tls_certificate: Path | None = Field(
        default=None, description="File with the certificate chain for gRPC over TLS (PEM)."
    )
    grpc_tls_key: Path | None = Field(default=None, description="File with the private key of that certificate (PEM).")
    database: str = Field(
        default="sqlite:///patchlog.db", description="Where the logs are: sqlite:///FILE, postgresql://… or memory:."
    )
    data_dir: Path = Field(default=Path("patchlog-data"), description="Folder for what is kept beside the database.")
    snapshots: str | None = Field(
        default=None,
        description="Folder for snapshots, or a URL that fsspec knows. Else it is beside an SQLite database, or in the "
        "data folder.",
    )
    snapshot_memory_bytes: int = Field(
        default=32 << 20, ge=1 << 20, description="What making a snapshot may hold in memory before it goes to disk."
    )
    keys: Literal["auto", "required", "off"] = Field(
        default="auto", description="Whether requests need an API key; auto: on all addresses but loopback."
    )

    allowed_hosts: _Words = Field(
        default=None,
        description="Names that requests may call the service by (the header Host), with commas between: NAME, "
        "NAME:PORT, *.SUFFIX, or * for all; localhost and loopback addresses always. Unset: those alone on loopback "
        "without keys, else all.",
    )
    allowed_origins: _Words = Field(
        default=None,
        description="Other origins whose web pages may use the service from a browser, with commas between: "
        "https://HOST or https://HOST:PORT, or * for all.",
    )

    audit_log: str = Field(
        default="auto",
        description="Where each change is written with who made it: a FILE, log for standard error, off; auto: log "
        "where keys are asked for, else off.",
    )
    audit_log_bytes: int = Field(
        default=64 << 20, ge=1 << 10, description="How large the audit log becomes before it is rotated."
    )
    audit_log_files: int = Field(default=10, ge=1, description="Rotated audit logs that are kept.")
    requests_per_second: float | None = Field(
        default=None, gt=0, description="Requests a second of each key, or of each address without keys. Unset: any."
    )
    upload_bytes_per_second: float | None = Field(
        default=None, gt=0, description="Uploaded bytes a second, likewise. Unset: any."
    )
    open_streams: int | None = Field(
        default=None, ge=1, description="Live tails at one time, likewise. Unset: any number."
    )

    max_body_bytes: int = Field(default=8 << 30, ge=1, description="The largest upload, decompressed too.")
    max_compression_ratio: int = Field(
        default=200, ge=1, description="How much larger than sent an upload may become, beyond its first 8 MiB."
    )
    max_head_bytes: int = Field(default=64 << 10, ge=1024, description="The largest request line with all headers.")
    max_connections: int = Field(
        default=20_000, ge=1, description="Connections at one time; more are answered with 503."
    )
    head_seconds: float = Field(default=20, gt=0, description="How long the headers of a request may take.")
    body_seconds: float = Field(
        default=60,
        gt=0,
        description="How long a client may pause in the middle of an upload, and how long a document may take.",
    )
    send_seconds: float = Field(default=60, gt=0, description="How long a client may leave its answer unread.")
    keep_alive_seconds: int = Field(default=75, ge=0, description="How long an idle connection is kept.")
    shutdown_seconds: int = Field(default=7, ge=0, description="How long requests may go on after SIGTERM.")

    heartbeat_seconds: float = Field(
        default=15, gt=0, description="How often a live tail without news says that it lives."
    )
    max_wait_seconds: float = Field(default=60, gt=0, description="The longest long poll.")
    poll_seconds: float = Field(
        default=1,
        gt=0,
        description="How often tailed logs are looked at for patches by processes that tell us nothing.",
    )

    # Small reads are mostly Python, of which one goes on at a time: more threads only take turns.
    read_threads: int = Field(
        default=2, ge=1, description="Short reads of the database at one time; more where it is far away."
    )
    commit_threads: int = Field(
        default=8, ge=1, description="Short writes at one time: consumers, new logs, snapshots that are begun."
    )
    append_threads: int = Field(default=64, ge=1, description="Uploads that are worked on at one time.")
    append_threads_per_key: int = Field(default=32, ge=1, description="Those of one API key.")
    snapshot_uploads: int = Field(default=4, ge=1, description="Datasets that are taken in at one time.")
    stream_threads: int = Field(
        default=4, ge=1, description="Pieces of ranges, live tails and downloads that are read at one time."
    )
    stream_threads_per_key: int = Field(default=2, ge=1, description="Those of one API key.")
    job_threads: int = Field(
        default=4, ge=1, description="Long reads at one time: verifications, differences, histories, datasets."
    )
    build_threads: int = Field(
        default=2, ge=1, description="Long writes at one time: snapshots, truncations, copies, deletions."
    )
    jobs_per_key: int = Field(
        default=2, ge=1, description="Long reads, long writes, and datasets of one API key at one time."
    )
    max_jobs_per_key: int = Field(
        default=100, ge=1, description="Jobs of one API key, going on or waiting; more are refused with 429."
    )

    @field_validator("allowed_hosts", "allowed_origins")
    @classmethod
    def _may_match(cls, given: tuple[str, ...] | None, info: ValidationInfo) -> tuple[str, ...] | None:
        is_of_hosts = info.field_name == "allowed_hosts"
        words = tuple(word.lower() for word in given or ())
        for word in words:
            if not (_HOST if is_of_hosts else _ORIGIN).fullmatch(word):
                form = "NAME, NAME:PORT or *.SUFFIX" if is_of_hosts else "https://HOST or https://HOST:PORT"
                raise ValueError(f"{word!r} would never match: write {form}")
        return words or None

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the service."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def snapshot_root(self) -> str | None:
        """Where snapshots go; None where that follows from the database."""
        if self.snapshots is not None or self.database.startswith("sqlite"):
            return self.snapshots
        return str(self.data_dir / "snapshots")

    @property
    def needs_keys(self) -> bool:
        """Whether requests need an API key."""
        return self.keys == "required" or (self.keys == "auto" and not self.is_loopback)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003  the name is pydantic's
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The file comes last. Raises UsageError where it cannot be read."""
        return init_settings, env_settings, _file_source(settings_cls), file_secret_settings


def _file_source(settings_cls: type[BaseSettings]) -> TomlConfigSettingsSource:
    named = os.environ.get(CONFIG_VARIABLE)
    file = Path(named or _FILE)
    if named and not file.is_file():
        raise UsageError(f"there is no file {named}, which {CONFIG_VARIABLE} or --config names")
    try:
        return TomlConfigSettingsSource(settings_cls, file)
    except (OSError, ValueError) as error:
        raise UsageError(f"the settings in {file} cannot be read: {error}") from error

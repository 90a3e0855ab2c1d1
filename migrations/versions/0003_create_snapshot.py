"""Create the tables of consumers and snapshots: who still needs which patches, and what stands for those that are gone.

The bytes of a snapshot are in a file. It is written down before it is begun, and again before it is deleted, so that no
crash leaves one that nobody knows.
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0003"
down_revision: str | None = "0002"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def log_key() -> sa.Column[int]:
    """The column that says which log a row belongs to."""
    return sa.Column("log", KEY, nullable=False)


def of_log(table: str) -> sa.ForeignKeyConstraint:
    """Rows go with their log."""
    return sa.ForeignKeyConstraint(["log"], ["log.key"], name=f"fk_{table}_log", ondelete="CASCADE")


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "consumer",
        log_key(),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("updated_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("log", "name", name="pk_consumer"),
        of_log("consumer"),
    )
    op.create_table(
        "snapshot",
        log_key(),
        sa.Column("version", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("location", sa.Text, nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("sha256", sa.LargeBinary(32), nullable=False),
        sa.Column("quads", sa.BigInteger, nullable=False),
        sa.Column("namespaces", sa.BigInteger, nullable=False),
        sa.Column("created_ms", sa.BigInteger, nullable=False),
        sa.Column("format_version", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("log", "version", name="pk_snapshot"),
        of_log("snapshot"),
    )
    op.create_table(
        "snapshot_build",
        log_key(),
        sa.Column("owner", sa.LargeBinary(16), nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("location", sa.Text, nullable=False),
        sa.Column("seen_ms", sa.BigInteger, nullable=False),
        sa.Column("error", sa.Text),
        sa.PrimaryKeyConstraint("log", name="pk_snapshot_build"),
        of_log("snapshot_build"),
    )
    op.create_table(
        "snapshot_trash",
        sa.Column("location", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("location", name="pk_snapshot_trash"),
    )


def downgrade() -> None:
    """Drop the tables. The files of snapshots stay, and nobody knows of them any more."""
    for table in ("snapshot_trash", "snapshot_build", "snapshot", "consumer"):
        op.drop_table(table)

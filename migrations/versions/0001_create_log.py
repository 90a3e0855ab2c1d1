"""Create the tables of logs: small rows for what is known of a patch, large ones for its bytes."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0001"
down_revision: str | None = None
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")
ID = sa.LargeBinary(16)
HASH = sa.LargeBinary(32)


def log_key() -> sa.Column[int]:
    """The column that says which log a row belongs to."""
    return sa.Column("log", KEY, nullable=False)


def of_log(table: str) -> sa.ForeignKeyConstraint:
    """Rows go with their log."""
    return sa.ForeignKeyConstraint(["log"], ["log.key"], name=f"fk_{table}_log", ondelete="CASCADE")


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "log",
        sa.Column("key", KEY, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("id", ID, nullable=False),
        sa.Column("rdf_star", sa.Boolean, nullable=False),
        sa.Column("generalized_statements", sa.Boolean, nullable=False),
        sa.Column("created_ms", sa.BigInteger, nullable=False),
        sa.Column("head_version", sa.BigInteger, nullable=False),
        sa.Column("head_id", ID),
        sa.Column("head_hash", HASH, nullable=False),
        sa.Column("head_ms", sa.BigInteger),
        sa.Column("first_version", sa.BigInteger, nullable=False),
        sa.Column("operations", sa.BigInteger, nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_log"),
        sa.UniqueConstraint("name", name="uq_log_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "patch",
        log_key(),
        sa.Column("version", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("id", ID, nullable=False),
        sa.Column("prev", ID),
        sa.Column("content_hash", HASH, nullable=False),
        sa.Column("chain_hash", HASH, nullable=False),
        sa.Column("body_hash", HASH, nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("operations", sa.BigInteger, nullable=False),
        sa.Column("adds", sa.BigInteger, nullable=False),
        sa.Column("deletes", sa.BigInteger, nullable=False),
        sa.Column("namespaces", sa.BigInteger, nullable=False),
        sa.Column("transactions", sa.BigInteger, nullable=False),
        sa.Column("time_ms", sa.BigInteger, nullable=False),
        sa.Column("body", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("log", "version", name="pk_patch"),
        sa.UniqueConstraint("log", "id", name="uq_patch_log_id"),
        of_log("patch"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "patch_chunk",
        log_key(),
        sa.Column("body", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("number", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("bytes", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("log", "body", "number", name="pk_patch_chunk"),
        of_log("patch_chunk"),
    )
    op.create_table(
        "stage",
        sa.Column("key", KEY, nullable=False),
        log_key(),
        sa.Column("begun_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_stage"),
        of_log("stage"),
        sqlite_autoincrement=True,
    )
    if op.get_bind().dialect.name == "postgresql":
        # Jelly is compact already; PostgreSQL would try to compress every chunk.
        op.execute("ALTER TABLE patch_chunk ALTER COLUMN bytes SET STORAGE EXTERNAL")


def downgrade() -> None:
    """Drop the tables, and all logs with them."""
    for table in ("stage", "patch_chunk", "patch", "log"):
        op.drop_table(table)

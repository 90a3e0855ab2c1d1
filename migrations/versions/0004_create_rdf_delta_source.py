"""Create the table of the URIs that RDF Delta's clients know logs by, where they are not the usual ones."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0004"
down_revision: str | None = "0003"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "rdf_delta_source",
        sa.Column("log", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False),
        sa.Column("uri", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("log", name="pk_rdf_delta_source"),
        sa.ForeignKeyConstraint(["log"], ["log.key"], name="fk_rdf_delta_source_log", ondelete="CASCADE"),
    )


def downgrade() -> None:
    """Drop the table: all logs have their usual URIs again."""
    op.drop_table("rdf_delta_source")

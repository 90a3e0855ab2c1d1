"""Create the table of what RDF Delta's clients fetched last: they are consumers, which have that when they go on."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0005"
down_revision: str | None = "0004"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "rdf_delta_track",
        sa.Column("log", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False, autoincrement=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("reached", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("log", "name", name="pk_rdf_delta_track"),
        sa.ForeignKeyConstraint(
            ["log", "name"],
            ["consumer.log", "consumer.name"],
            name="fk_rdf_delta_track_log_name",
            ondelete="CASCADE",
        ),
    )


def downgrade() -> None:
    """Drop the table: clients of RDF Delta's API are where they were for certain."""
    op.drop_table("rdf_delta_track")

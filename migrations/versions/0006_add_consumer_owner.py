"""Add the owner of a consumer: the principal that made it. Those that are there have none yet."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0006"
down_revision: str | None = "0005"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("consumer", sa.Column("owner", sa.String(100)))


def downgrade() -> None:
    """Drop the column: who may read a log may move all of its consumers again."""
    op.drop_column("consumer", "owner")

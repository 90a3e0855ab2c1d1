"""Add to logs what says that they are being deleted, how far their truncation is, and who has the next place.

A log that was deleted, and the bytes that truncation forgets, are deleted some at a time; a large upload has its place
kept while it is hashed. The release before knows nothing of it, and does all at once.
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0007"
down_revision: str | None = "0006"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

_COLUMNS = ("deleted_ms", "cleared_version", "reserved_by", "reserved_until_ms")


def upgrade() -> None:
    """Add the columns. All that there is has nothing in them."""
    for name in _COLUMNS:
        op.add_column("log", sa.Column(name, sa.BigInteger))


def downgrade() -> None:
    """Finish what was begun, and drop the columns."""
    op.execute("DELETE FROM log WHERE deleted_ms IS NOT NULL")
    op.execute(
        "DELETE FROM patch_chunk WHERE EXISTS (SELECT 1 FROM log JOIN patch ON patch.log = log.key "
        "WHERE patch_chunk.log = log.key AND patch_chunk.body = patch.body "
        "AND patch.version >= log.cleared_version AND patch.version < log.first_version)"
    )
    for name in _COLUMNS:
        op.drop_column("log", name)

"""${message}.

Rules of this house, to be kept and then deleted from here:

- The first line says what changes, and the next ones why.
- The release before goes on running on the tables after this: add, fill, and only a release later drop.
- Name every constraint by the convention in patchlog.log.tables; set REVISION there.
- Nothing here may take long under a lock: a log has millions of patches.
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
${imports if imports else ""}
revision: str = ${repr(up_revision)}
down_revision: str | None = ${repr(down_revision)}
branch_labels: str | Sequence[str] | None = ${repr(branch_labels)}
depends_on: str | Sequence[str] | None = ${repr(depends_on)}


def upgrade() -> None:
    """Change the tables."""
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    """Change them back."""
    ${downgrades if downgrades else "pass"}

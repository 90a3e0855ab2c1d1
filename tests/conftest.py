"""What all tests share."""

from hypothesis import settings

# A deadline measures the machine, and a busy one fails tests that are right.
settings.register_profile("patchlog", parent=settings(), deadline=None)
settings.load_profile("patchlog")

"""patchlog: record every change of an RDF dataset, keep the changes in a log, ship and materialise them."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("patchlog")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0.0.0"

__all__ = ["__version__"]

"""The apply job: patch logs as Delta tables. Empty in this release; the package holds the name and its place."""

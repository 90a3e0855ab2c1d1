"""The service: patch logs over HTTP. Empty in this release; the package holds the name and its place."""

"""The service: patch logs over HTTP. `api.app` puts it together, `api.routes` has one module for each room of it."""

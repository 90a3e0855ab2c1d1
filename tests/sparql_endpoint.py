"""A SPARQL endpoint for rdflib's stores: Oxigraph in memory, behind as much of the protocol as rdflib uses."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlparse

import pyoxigraph


class Handler(BaseHTTPRequestHandler):
    """Answers queries and updates."""

    def do_POST(self):
        update = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.requests.append(update)
        self.server.store.update(update)
        self.reply(b"", "text/plain")

    def do_GET(self):
        asked = parse_qs(urlparse(self.path).query)
        graphs = [pyoxigraph.NamedNode(name) for name in asked.get("default-graph-uri", ())]
        results = self.server.store.query(asked["query"][0], default_graph=graphs or None)
        self.reply(results.serialize(format=pyoxigraph.QueryResultsFormat.XML), "application/sparql-results+xml")

    def reply(self, data, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@contextmanager
def serving_sparql():
    """A server with an empty `store`, and the updates that were `requests`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.store, server.requests = pyoxigraph.Store(), []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

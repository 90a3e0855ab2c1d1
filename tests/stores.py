"""Stores over HTTP for followers to write to: Oxigraph behind the SPARQL and Graph Store protocols and RDF Patch."""

from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from urllib.parse import parse_qs, urlsplit

import httpx
import pyoxigraph

from patchlog import blank_node_term, iri_term, literal_term, patch
from patchlog.effect import effect
from patchlog.followers.skolem import deskolemised

ALL = "SELECT ?s ?p ?o ?g { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }"
POSITIONS = "urn:patchlog:positions"


class Store:
    """A store over HTTP: where to send what, and how to see all that it has."""

    def __init__(self, base):
        self.base = base
        self.client = httpx.Client(timeout=30)

    def quads(self):
        """What it has but for positions. Blank nodes are those of the log again."""
        return {quad for quad in self.all_quads() if quad[3] != f"<{POSITIONS}>"}

    def all_quads(self):
        answer = self.client.post(
            f"{self.base}/query",
            content=ALL,
            headers={"Content-Type": "application/sparql-query", "Accept": "application/sparql-results+json"},
        )
        rows = answer.raise_for_status().json()["results"]["bindings"]
        return {tuple(_term(row[name]) if name in row else "" for name in "spog") for row in rows}

    def update(self, text):
        self.client.post(
            f"{self.base}/update", content=text, headers={"Content-Type": "application/sparql-update"}
        ).raise_for_status()

    def clear(self):
        self.update("DROP ALL")


def _term(value):
    if value["type"] == "uri":
        return deskolemised(iri_term(value["value"]))
    if value["type"] == "bnode":
        return blank_node_term(value["value"])
    return literal_term(value["value"], language=value.get("xml:lang"), datatype=value.get("datatype"))


class OxigraphHandler(BaseHTTPRequestHandler):
    """As much of the protocols as a client uses, before a real Oxigraph: `/query`, `/update`, `/data` and `/patch`."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        data = self._body()
        match urlsplit(self.path).path:
            case "/update":
                self._answer(lambda: self.server.store.update(data.decode()), is_update=True)
            case "/query":
                self._answer(lambda: self.server.store.query(data.decode()).serialize(format=_JSON), _RESULTS)
            case "/patch":
                self._answer(lambda: apply_patch(self.server.store, data), is_update=True)
            case "/data":
                self._answer(
                    lambda: self.server.store.load(data, format=_NTRIPLES, to_graph=self._graph()), is_update=True
                )

            case _:
                self._answer(bytes)

    def do_GET(self):
        self._answer(lambda: self.server.store.dump(format=_NTRIPLES, from_graph=self._graph()))

    def do_PUT(self):
        data = self._body()

        def put():
            self.server.store.clear_graph(self._graph())
            self.server.store.load(data, format=_NTRIPLES, to_graph=self._graph())

        self._answer(put, is_update=True)

    def _graph(self):
        graph = parse_qs(urlsplit(self.path).query).get("graph")
        return pyoxigraph.NamedNode(graph[0]) if graph else pyoxigraph.DefaultGraph()

    def _body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers["Content-Length"]))
        data = b""
        while size := int(self.rfile.readline(), 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data

    def _answer(self, work, media_type="application/n-triples", *, is_update=False):
        self.server.updates += is_update
        self.server.authorization.add(self.headers.get("Authorization"))
        if self.server.moved is not None and {self.command, urlsplit(self.path).path, None} & self.server.moved_methods:
            status, place = self.server.moved
            self.send_response(status)
            self.send_header("Location", f"{place}{self.path}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body, status = b"", 200
        try:
            with self.server.lock:
                body = work() or b""
        except (SyntaxError, ValueError) as error:
            body, status = str(error).encode(), 400
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


_JSON = pyoxigraph.QueryResultsFormat.JSON
_NTRIPLES = pyoxigraph.RdfFormat.N_TRIPLES
_RESULTS = "application/sparql-results+json"


def apply_patch(store, data):
    """Do what RDF Patch text says, all or nothing; blank nodes keep their labels."""
    found = effect(patch.read(data, "rdf-patch"))
    added, deleted = (pyoxigraph.parse(_lines(quads), _NQUADS) for quads in (found.adds, found.deletes))
    for quad in list(deleted):
        store.remove(quad)
    store.extend(added)


def _lines(quads):
    return "".join(f"{' '.join(filter(None, quad))} .\n" for quad in quads).encode()


_NQUADS = pyoxigraph.RdfFormat.N_QUADS


@contextmanager
def serving_oxigraph(port=0):
    """A server with an empty store in memory: `store`, how many `updates` it got, and where it has `moved` to."""
    server = ThreadingHTTPServer(("127.0.0.1", port), OxigraphHandler)
    server.daemon_threads, server.lock = True, Lock()
    server.store, server.updates = pyoxigraph.Store(), 0
    server.moved, server.moved_methods, server.authorization = None, {None}, set()
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

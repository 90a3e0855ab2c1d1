"""What RDF Delta's clients do, each from an address of its own."""

import uuid

import httpx

JSON = {"Content-Type": "application/json", "Accept": "application/json"}


def new_id():
    return str(uuid.uuid4())


def patch(id, prev=None, rows='TX .\nA <_:b1> <http://e/p> "01"^^<http://e/n> .\nTC .\n'):
    before = f"H prev <uuid:{prev}> .\n" if prev else ""
    return f"H id <uuid:{id}> .\n{before}{rows}"


class DeltaClient:
    """A Fuseki with a `delta:` dataset: it fetches what it lacks one by one, in one local transaction."""

    def __init__(self, service, address="127.0.0.1", *, at=0, headers=()):
        self.client = httpx.Client(
            base_url=f"{service.url}/rdf-delta",
            transport=httpx.HTTPTransport(local_address=address),
            timeout=60,
            headers=dict(headers),
        )
        self.version = at
        self.lock_ref = None

    def call(self, operation, **argument):
        return self.client.post("/$/rpc", json={"opid": "", "operation": operation, "arg": argument}, headers=JSON)

    def asked(self, operation, **argument):
        answer = self.call(operation, **argument)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def connect(self, name):
        """Find a data source by its name, as clients do when they start."""
        self.log = self.asked("describe_datasource", name=name)["id"].removeprefix("id:")
        return self

    def describe(self):
        return self.asked("describe_log", datasource=self.log)

    def fetch(self, version):
        return self.client.get(f"/{self.log}/{version}")

    def sync(self, *, dies_at=None):
        """Fetch all that is new. Who dies in the middle is where it was before."""
        version = self.version
        last = self.describe()["max_version"]
        while version < last:
            if version + 1 == dies_at:
                return
            self.fetch(version + 1).raise_for_status()
            version += 1
        self.version = version

    def update(self, rows='TX .\nA <http://e/s> <http://e/p> "x" .\nTC .\n'):
        """Commit a local transaction: under the lock, after what is new was fetched."""
        self.lock()
        try:
            self.sync()
            latest = self.describe()["latest"].removeprefix("id:")
            answer = self.client.post(f"/{self.log}", content=patch(new_id(), latest or None, rows))
            answer.raise_for_status()
            self.version = answer.json()["version"]
        finally:
            self.unlock()
        return self.version

    def lock(self):
        self.lock_ref = self.asked("lock", datasource=self.log)["lock-ref"]
        return self.lock_ref

    def refresh(self):
        """Whether the lock is still this client's."""
        mine = {"datasource": self.log, "lock-ref": self.lock_ref}
        return self.asked("lock-refresh", array=[mine]) == {"array": []}

    def unlock(self):
        self.asked("unlock", datasource=self.log, **{"lock-ref": self.lock_ref})

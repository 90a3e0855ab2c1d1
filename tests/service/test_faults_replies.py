"""Lost replies, and writers in each other's way: one version for each patch, one winner for each head."""

import http.client
import socket
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest


class CuttingProxy:
    """Passes requests on, and every other answer not: the connection is closed when its first byte is there."""

    def __init__(self, port):
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self):
        number = 0
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            number += 1
            self._pass(client, cut=number % 2 == 1)

    def _pass(self, client, *, cut):
        """One request on one connection, as the client says `Connection: close`."""
        with client, socket.create_connection(("127.0.0.1", self._port)) as service:
            there = threading.Thread(target=self._copy, args=(client, service), daemon=True)
            there.start()
            if cut:
                service.recv(1, socket.MSG_PEEK)
            else:
                self._copy(service, client)
            client.shutdown(socket.SHUT_RDWR)
            there.join(10)

    @staticmethod
    def _copy(source, target):
        try:
            while data := source.recv(1 << 16):
                target.sendall(data)
        except OSError:
            return

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)


@pytest.fixture
def cutting_proxy(service):
    proxy = CuttingProxy(service.port)
    yield proxy
    proxy.close()


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_patch_whose_answer_was_lost_has_one_version(cutting_proxy, log, patches, framing):
    """Both ways through the service: `framing` decides which."""
    lost = 0
    with httpx.Client(base_url=cutting_proxy.url, headers={"Connection": "close"}, timeout=20) as client:
        for number in range(1, 31):
            body = b"".join(patches.one(f"s{number}", id=str(uuid.uuid4())))
            answer = None
            while answer is None:
                try:
                    answer = client.post(
                        f"{log.path}/patches",
                        content=body if framing == "length" else iter([body]),
                        headers={"Content-Type": "application/x-jelly-rdf-patch"},
                    )
                except httpx.TransportError:
                    lost += 1

            assert answer.status_code == 200, "it was there already"
            assert answer.json()["version"] == number

    assert lost == 30
    assert log.get().json()["head"]["version"] == 30


@pytest.mark.slow
def test_of_writers_who_name_the_same_head_one_wins(log, patches):
    """32 writers each build on the head that they know of, until each has appended five patches."""
    writers, each = 32, 5
    conflicts = []

    def write(who):
        connection = http.client.HTTPConnection("127.0.0.1", log.service.port, timeout=60)
        won, head = [], None
        while len(won) < each:
            condition = {"If-None-Match": "*"} if head is None else {"If-Match": f'"{head}"'}
            body = b"".join(patches.one(f"{who}-{len(won)}", id=str(uuid.uuid4())))
            headers = {"Content-Type": "application/x-jelly-rdf-patch", **condition}
            connection.request("POST", f"{log.path}/patches", body, headers)
            answer = connection.getresponse()
            answer.read()
            known, head = head, answer.headers["ETag"].strip('"')
            if answer.status == 201:
                won.append((known, head))
            else:
                assert answer.status == 412
                conflicts.append(head)
        connection.close()
        return won

    with ThreadPoolExecutor(writers) as threads:
        won = [step for steps in threads.map(write, range(writers)) for step in steps]

    page = log.get(f"/patches?limit={writers * each}", headers={"Accept": "application/json"}).json()
    assert [(patch["prev"], patch["id"]) for patch in page["patches"]] == sorted(
        won, key=lambda step: next(patch["version"] for patch in page["patches"] if patch["id"] == step[1])
    )
    assert len({known for known, _ in won}) == len(won) == writers * each, "each head has one winner"
    assert conflicts

"""A wire to a service that can be cut: an outage without a restart of the service."""

import socket
import threading
from contextlib import suppress


class Relay:
    """Passes connections on to a port of this machine, while it is open."""

    def __init__(self, port):
        self._to = port
        self._lock = threading.Lock()
        self._sockets = []
        self._listener = None
        self.port = 0
        self.open()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def open(self):
        listener = socket.create_server(("127.0.0.1", self.port))
        self.port, self._listener = listener.getsockname()[1], listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def cut(self):
        with self._lock:
            sockets, self._sockets = self._sockets, []
            listener, self._listener = self._listener, None
        for one in [*([] if listener is None else [listener]), *sockets]:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        if listener is not None:
            listener.close()

    def _accept(self, listener):
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._to))
            with self._lock:
                is_cut = self._listener is not listener
                if not is_cut:
                    self._sockets += [near, far]
            if is_cut:
                near.close()
                far.close()
                return
            threading.Thread(target=self._serve, args=(near, far), daemon=True).start()

    def _serve(self, near, far):
        there = threading.Thread(target=_pass, args=(near, far), daemon=True)
        there.start()
        _pass(far, near)
        there.join()
        with self._lock:
            for one in (near, far):
                one.close()
                with suppress(ValueError):
                    self._sockets.remove(one)


def _pass(source, sink):
    with suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    for one in (source, sink):
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)

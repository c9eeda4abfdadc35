"""A kubelet whose containers have the logs that a test writes, for the API server.

    logs.py CERTIFICATE KEY DIRECTORY

It prints its port. The log of a container is the file DIRECTORY/POD/CONTAINER, whose lines begin with their times. A log
that is followed ends when the file DIRECTORY/POD/CONTAINER.ended exists.
"""

import pathlib
import ssl
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

CERTIFICATE, KEY, DIRECTORY = sys.argv[1:]


class Logs(BaseHTTPRequestHandler):
    def do_GET(self):
        url = urlsplit(self.path)
        page, _, pod, container = url.path.strip("/").split("/")
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        assert page == "containerLogs" and query.get("timestamps") == "true", self.path
        name = container + (".previous" if query.get("previous") == "true" else "")
        file = pathlib.Path(DIRECTORY, pod, name)
        if not file.exists():
            self.send_error(404, f"no log of {pod}")
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        lines = file.read_bytes().splitlines(keepends=True)
        if "tailLines" in query:
            lines = lines[len(lines) - int(query["tailLines"]) :]
        self.wfile.write(b"".join(lines))
        at = file.stat().st_size
        while query.get("follow") == "true":
            self.wfile.flush()
            ended = file.with_name(name + ".ended").exists()
            with file.open("rb") as log:
                log.seek(at)
                more = log.read()
            self.wfile.write(more)
            at += len(more)
            if ended:
                break
            time.sleep(0.02)

    def log_message(self, *_):
        pass


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(CERTIFICATE, KEY)
server = ThreadingHTTPServer(("127.0.0.1", 0), Logs)
server.daemon_threads = True
server.socket = context.wrap_socket(server.socket, server_side=True)
print(f"port: {server.server_port}", flush=True)
server.serve_forever()

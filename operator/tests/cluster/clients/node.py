"""A node whose containers have logs, as a kubelet serves them to the API server."""

import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Logs(BaseHTTPRequestHandler):
    """GET /containerLogs/NAMESPACE/POD/CONTAINER"""

    def do_GET(self):
        page, _, pod, container = self.path.split("?")[0].strip("/").split("/")
        assert page == "containerLogs", self.path
        text = f"{pod} {container}: a line\nand one more\n".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def start(api, name, certificate, key):
    """Makes the node of this name, at a port of this process; returns its name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Logs)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    api.create_node({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    port = {"kubeletEndpoint": {"Port": server.server_port}}
    status = {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}], "daemonEndpoints": port}
    api.patch_node_status(name, {"status": status})
    return name

"""A server on loopback that speaks OpenAI's chat completions, and does what a test has written down for it."""

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

#: What the client is asked to wait before it tries again, so that no test waits.
AT_ONCE = {"retry-after-ms": "1"}


@dataclass
class Reply:
    """What the server does with one request: send some bytes, and then end, break off, or say nothing more."""

    body: bytes = b""
    status: int = 200
    kind: str = "application/json"
    headers: dict = field(default_factory=dict)
    #: The bytes are sent in parts of this size, each as a chunk of its own.
    part: int | None = None
    #: "end", "drop" (the connection closes although more was promised), "fade" (it closes where nothing was promised),
    #: or "stall" until the server is closed.
    after: str = "end"


def completion(message, *, usage=None, finish_reason="stop", **fields):
    """Return a reply that is a whole answer."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}
    body = {"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice], "usage": usage, **fields}
    return Reply(json.dumps(body).encode())


def call(name, args, identity, **more):
    """Return a tool call; the arguments may be any text."""
    function = {"name": name, "arguments": args if isinstance(args, str) else json.dumps(args)}
    return {"id": identity, "type": "function", "function": function, **more}


def event(data):
    """Return an event of a stream."""
    return f"data: {data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)}\n\n".encode()


def delta(finish_reason=None, usage=None, **fields):
    """Return an event with a piece of an answer."""
    choice = {"index": 0, "delta": fields, "finish_reason": finish_reason}
    return event({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice], "usage": usage})


def reported(usage):
    """Return the event with the usage, which has no choices."""
    return event({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": usage})


DONE = event("[DONE]")


def streamed(*events, part=None, after="end"):
    """Return a reply that is a stream of events."""
    return Reply(b"".join(events), kind="text/event-stream", part=part, after=after)


def refused(status, message="no", headers=AT_ONCE):
    """Return a reply with an error."""
    return Reply(json.dumps({"error": {"message": message, "type": "test"}}).encode(), status, headers=headers)


class ChatServer:
    """Answers the first request with the first reply, and so on; one that it has no reply for is refused with a 400."""

    def __init__(self, *replies):
        self.replies = list(replies)
        #: The bodies of the requests.
        self.asked = []
        self.headers = []
        #: Released for each request that has arrived.
        self.arrived = threading.Semaphore(0)
        self.closing = threading.Event()
        self.lock = threading.Lock()

    def __enter__(self):
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with server.lock:
                    server.asked.append(body)
                    server.headers.append({name.lower(): value for name, value in self.headers.items()})
                    reply = server.replies.pop(0) if server.replies else refused(400, "no reply is left")
                server.arrived.release()
                if self.path != "/v1/chat/completions":
                    reply = refused(404, self.path)
                self.perform(reply)

            def perform(self, reply):
                chunked = reply.kind == "text/event-stream" and reply.after != "fade"
                self.send_response(reply.status)
                self.send_header("content-type", reply.kind)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                if chunked:
                    self.send_header("transfer-encoding", "chunked")
                elif reply.after == "fade":
                    self.send_header("connection", "close")
                else:
                    self.send_header("content-length", str(len(reply.body) + (reply.after != "end")))
                self.end_headers()
                size = reply.part or len(reply.body) or 1
                for start in range(0, len(reply.body), size):
                    part = reply.body[start : start + size]
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part) if chunked else part)
                self.wfile.flush()
                if reply.after == "stall":
                    server.closing.wait()
                if chunked and reply.after == "end":
                    self.wfile.write(b"0\r\n\r\n")
                self.close_connection = reply.after != "end"

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.block_on_close = False
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.closing.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    @property
    def url(self):
        """What a client takes as its base_url."""
        return f"http://127.0.0.1:{self.server.server_address[1]}/v1"

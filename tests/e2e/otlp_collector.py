#!/usr/bin/env python3
"""otlp_collector.py FILE: an OpenTelemetry collector as small as one can be. Takes OTLP over gRPC on a free port of the loopback, prints the
port, and appends each span to FILE as a line of JSON: service, name, trace, span, parent, links, start_ns, end_ns, error, attributes."""
import json, socketserver, struct, sys

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS, PADDED = 1, 1, 4, 8


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(data):
    """(number, value) of a protobuf message; value is bytes or an integer."""
    at, out = 0, []
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        elif tag & 7 == 1:
            value, at = struct.unpack_from("<Q", data, at)[0], at + 8
        else:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        out.append((tag >> 3, value))
    return out


def all_of(data, number):
    return [value for found, value in fields(data) if found == number]


def first(data, number, default=b""):
    return next(iter(all_of(data, number)), default)


def attributes(items):
    out = {}
    for item in items:
        value = fields(first(item, 2))
        kind, content = value[0] if value else (1, b"")
        out[first(item, 1).decode()] = content.decode() if kind == 1 else content
    return out


def spans(export):
    for resource in all_of(export, 1):
        service = attributes(all_of(first(resource, 1), 1)).get("service.name", "")
        for scope in all_of(resource, 2):
            for span in all_of(scope, 2):
                yield {"service": service, "name": first(span, 5).decode(), "trace": first(span, 1).hex(), "span": first(span, 2).hex(),
                       "parent": first(span, 4).hex(), "links": [first(link, 1).hex() for link in all_of(span, 13)],
                       "start_ns": first(span, 7, 0), "end_ns": first(span, 8, 0), "error": first(first(span, 15), 2).decode(),
                       "attributes": attributes(all_of(span, 9))}


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name, value):
    """A header field without Huffman and without index (RFC 7541, 6.2.2)."""
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


class Connection(socketserver.StreamRequestHandler):
    def handle(self):
        if self.rfile.read(len(PREFACE)) != PREFACE:
            return
        self.wfile.write(frame(SETTINGS, 0, 0) + frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 30)))
        bodies = {}
        while True:
            head = self.rfile.read(9)
            if len(head) < 9:
                return
            size, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
            stream, payload = int.from_bytes(head[5:], "big") & 0x7FFFFFFF, self.rfile.read(int.from_bytes(head[:3], "big"))
            if kind == SETTINGS and not flags & ACK:
                self.wfile.write(frame(SETTINGS, ACK, 0))
            elif kind == PING and not flags & ACK:
                self.wfile.write(frame(PING, ACK, 0, payload))
            elif kind == DATA:
                body = payload[1:size - payload[0]] if flags & PADDED else payload
                bodies[stream] = bodies.get(stream, b"") + body
                if size:
                    self.wfile.write(frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", size)))
            elif kind == GOAWAY:
                return
            if kind in (DATA, HEADERS) and flags & END_STREAM:
                self.answer(stream, bodies.pop(stream, b""))

    def answer(self, stream, body):
        with open(sys.argv[1], "a") as out:
            for span in spans(body[5:]):  # After gRPC's own five bytes.
                out.write(json.dumps(span) + "\n")
        self.wfile.write(frame(HEADERS, END_HEADERS, stream, b"\x88" + literal(b"content-type", b"application/grpc"))
                         + frame(DATA, 0, stream, b"\0\0\0\0\0") + frame(HEADERS, END_HEADERS | END_STREAM, stream, literal(b"grpc-status", b"0")))
        self.wfile.flush()


class Collector(socketserver.ThreadingTCPServer):
    daemon_threads = allow_reuse_address = True


with Collector(("127.0.0.1", 0), Connection) as collector:
    print(collector.server_address[1], flush=True)
    collector.serve_forever()

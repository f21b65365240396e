#!/usr/bin/env python3
"""A client of the WebSocket form of port-forward (v4.channel.k8s.io): sends a line to a pod's port and prints what comes back.
usage: port_forward.py HOST:PORT PATH TEXT   (HOST:PORT of `kubectl proxy`, PATH with its query)"""
import base64
import os
import socket
import struct
import sys

address, path, text = sys.argv[1:4]
host, port = address.split(":")
link = socket.create_connection((host, int(port)), timeout=15)
link.sendall((f"GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
              f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}\r\nSec-WebSocket-Protocol: v4.channel.k8s.io\r\n\r\n").encode())
stream = link.makefile("rb")
status = stream.readline().decode().strip()
while stream.readline().strip():
    pass
if " 101 " not in status:
    sys.exit(f"not upgraded: {status}")


def send(payload):
    mask = os.urandom(4)
    link.sendall(bytes([0x82, 0x80 | len(payload)]) + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload)))


def frame():
    first, second = stream.read(2)
    size = second & 0x7F
    if size == 126:
        size = struct.unpack(">H", stream.read(2))[0]
    return first & 0x0F, stream.read(size)


send(b"\0" + text.encode() + b"\n")
while True:
    kind, payload = frame()
    if kind == 8:
        sys.exit("closed before anything came")
    # The first words of either channel are the port's number.
    if kind == 2 and payload[:1] == b"\0" and len(payload) > 3:
        print(payload[1:].decode().strip())
        break
    if kind == 2 and payload[:1] == b"\1" and len(payload) > 3:
        sys.exit("error: " + payload[1:].decode())

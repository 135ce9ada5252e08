#!/usr/bin/env python3
"""What lies between the ranks of a job: every TCP connection between them goes through here (proxy.c).

proxy.py FOLDER: writes its port to FOLDER/port. While FOLDER/cut is there nothing arrives, and no end of a connection is seen, as where a cable is pulled: in
both directions, or where the file says "up" or "down", only what comes from the side that connected or only what goes to it. Nothing is lost: TCP would send it again.
FOLDER/flip: one bit of a long piece is turned, once; the file is renamed to `flipped`. It says after how many bytes of long pieces (none: the next one): into how
many pieces TCP cuts them is the machine's affair. With a second word the bit stays as it is, which a test must find. It ends with its standard input.
"""
import os
import socket
import struct
import sys
import threading
import time

LONG = 8192  # bytes: no sign of life, but what ranks compute with
folder = sys.argv[1]


def is_cut(direction):
    try:
        with open(os.path.join(folder, "cut")) as f:
            said = f.read().strip()
        return said in ("", direction)
    except FileNotFoundError:
        return False


passed = 0  # bytes of long pieces since flip is there
lock = threading.Lock()


def damaged(data):
    global passed
    if len(data) < LONG:
        return data
    with lock:
        try:
            with open(os.path.join(folder, "flip")) as f:
                after, *left = f.read().split() or ["0"]
        except FileNotFoundError:
            passed = 0
            return data
        passed += len(data)
        if passed <= int(after):
            return data
        os.rename(os.path.join(folder, "flip"), os.path.join(folder, "flipped"))
    if left:
        return data
    at = len(data) // 2 // 4 * 4 + 1  # of a float: a bit of its mantissa
    return data[:at] + bytes([data[at] ^ 64]) + data[at + 1:]


def pump(source, target, direction):
    try:
        while True:
            data = source.recv(1 << 16)
            while is_cut(direction):
                time.sleep(0.02)
            if not data:
                break
            target.sendall(damaged(data))
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for s in (source, target):  # one side is gone: so is the other
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def serve(client):
    head = client.recv(16, socket.MSG_WAITALL)
    if len(head) < 16:
        return
    port, = struct.unpack(">H", head[2:4])
    try:
        server = socket.create_connection((socket.inet_ntoa(head[4:8]), port))
    except OSError:
        client.close()
        return
    for s in (client, server):
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    threading.Thread(target=pump, args=(client, server, "up"), daemon=True).start()
    pump(server, client, "down")


def accept(listener):
    while True:
        client, _ = listener.accept()
        threading.Thread(target=serve, args=(client,), daemon=True).start()


listener = socket.create_server(("127.0.0.1", 0), backlog=100)
with open(os.path.join(folder, "port.new"), "w") as f:
    f.write(str(listener.getsockname()[1]))
os.rename(os.path.join(folder, "port.new"), os.path.join(folder, "port"))
threading.Thread(target=accept, args=(listener,), daemon=True).start()
sys.stdin.read()

#!/usr/bin/env python3
"""The network between the ranks of a job: every TCP connection between them goes through this program (proxy.c).

proxy.py FOLDER: writes its port to FOLDER/port. While FOLDER/cut exists nothing arrives, and no end of a connection is seen, as
with a pulled cable: in both directions, or, if the file has "up" or "down", only data from the side that connected or only data to
it. Nothing is lost, because TCP would send it again.
FOLDER/flip: one bit of a long message is flipped, once; then the file is renamed to `flipped`. It has the number of bytes of long
messages before the flip (none: the next message). The number of segments into which TCP cuts a message differs between machines.
With a second word the bit is not flipped, which a test must notice. The program ends with its standard input.
"""
import os
import socket
import struct
import sys
import threading
import time

LONG = 8192 # bytes: data of the computation, not signs of life
folder = sys.argv[1]


def is_cut(direction):
    try:
        with open(os.path.join(folder, "cut")) as f:
            said = f.read().strip()
        return said in ("", direction)
    except FileNotFoundError:
        return False


passed = 0 # bytes of long messages since flip exists
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
    at = len(data) // 2 // 4 * 4 + 1 # of a float: a bit of its mantissa
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
        for s in (source, target): # when one side has ended, so has the other
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

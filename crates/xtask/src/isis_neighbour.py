"""A neighbour in IS-IS, as far as a router on a point-to-point link of level 1 asks for one (ISO 10589, RFC 5303): it keeps the
adjacency up, acknowledges LSPs, and floods one of its own with a host's prefix. Each line of the input is that prefix's flags
(RFC 7794), an octet in hexadecimal; an empty line purges the LSP. Arguments: interface, area, prefix."""

import select
import socket
import struct
import sys
import time

IIH, LSP, PSNP = 17, 18, 26
SELF = bytes([0, 0, 0, 0, 0, 1])
ALL_IS = bytes.fromhex("09002b000005")
UP, INITIALIZING, DOWN = range(3)
OUTGOING = 4

interface, area, prefix = sys.argv[1:]
area, prefix = bytes.fromhex(area), socket.inet_aton(prefix)
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
link.bind((interface, 3))


def tlv(kind, value):
    return bytes([kind, len(value)]) + value


def send(kind, fixed, tlvs):
    """Sends a PDU; its own length stands between the two halves of its fixed part."""
    before, after = fixed
    length = 8 + len(before) + 2 + len(after)
    pdu = bytes([0x83, length, 1, 0, kind, 1, 0, 0]) + before + struct.pack("!H", length + len(tlvs)) + after + tlvs
    if kind == LSP:
        pdu = pdu[:24] + checksum(pdu[12:], 12) + pdu[26:]
    own = link.getsockname()[4]
    link.send(ALL_IS + own + struct.pack("!H", len(pdu) + 3) + b"\xfe\xfe\x03" + pdu)


def checksum(octets, at):
    """Fletcher's, with octets of 0 in its place (ISO 8473)."""
    low = high = 0
    for octet in octets:
        low = (low + octet) % 255
        high = (high + low) % 255
    first = ((len(octets) - at - 1) * low - high) % 255 or 255
    return bytes([first, (510 - low - first - 1) % 255 + 1])


AREA, IPV4, ADDRESS = tlv(1, bytes([len(area)]) + area), tlv(129, b"\xcc"), tlv(132, prefix)
state, neighbour, sequence, next_hello = DOWN, b"", 0, 0.0
while True:
    if time.monotonic() >= next_hello:
        three_way = tlv(240, bytes([state]) + struct.pack("!I", 1) + neighbour)
        send(IIH, (b"\x01" + SELF + struct.pack("!H", 30), b"\x01"), AREA + IPV4 + ADDRESS + three_way)
        next_hello = time.monotonic() + 1
    ready, _, _ = select.select([link, sys.stdin], [], [], max(0.0, next_hello - time.monotonic()))
    if sys.stdin in ready:
        line = sys.stdin.readline()
        if not line:
            break
        sequence += 1
        flags, lifetime, tlvs = bytes.fromhex(line.strip()), 0, b""
        if flags:
            reached = tlv(22, neighbour[:6] + bytes([0, 0, 0, 10, 0]))
            lifetime, tlvs = 1200, AREA + IPV4 + ADDRESS + reached
            tlvs += tlv(135, bytes(4) + bytes([0x40 | 32]) + prefix + bytes([2 + len(flags)]) + tlv(4, flags))
        header = struct.pack("!H", lifetime) + SELF + bytes(2) + struct.pack("!I", sequence) + bytes(2) + b"\x01"
        send(LSP, (b"", header), tlvs)
    if link in ready:
        frame, address = link.recvfrom(2048)
        if address[2] == OUTGOING or frame[14:17] != b"\xfe\xfe\x03":
            continue
        pdu = frame[17:]
        kind = pdu[4] & 31
        if kind == LSP:
            send(PSNP, (b"", SELF + b"\x00"), tlv(9, pdu[10:26]))
        if kind == IIH:
            at = 20
            while at + 2 <= len(pdu):
                value = pdu[at + 2 : at + 2 + pdu[at + 1]]
                if pdu[at] == 240:
                    state = UP if value[5:11] == SELF else INITIALIZING
                    neighbour, next_hello = pdu[9:15] + value[1:5], 0.0 if state != UP else next_hello
                at += 2 + pdu[at + 1]

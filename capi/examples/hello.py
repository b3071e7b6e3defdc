"""Everybody says hello to rank 0, in Python, through the C library.

    nmad run -n 4 python3 hello.py

The library is looked for in the environment of this Python (where `pip install` puts it), then below the prefix of
`nmad install` that this file lies in.
"""

import ctypes
import sys
from ctypes import byref, c_char_p, c_uint32, c_uint64
from pathlib import Path

HELLO = 7
ANY_RANK = 2**32 - 1


class Message(ctypes.Structure):
    _fields_ = [("rank", c_uint32), ("context", c_uint32)]
    _fields_ += [(name, c_uint64) for name in ("tag", "len", "received")]


def load():
    places = [Path(sys.prefix), *Path(__file__).resolve().parents]
    found = [path for place in places for path in sorted(place.glob("lib/libnmad.so.[0-9]*"))]
    library = ctypes.CDLL(str(found[0]) if found else "libnmad.so")
    library.nmad_last_error.restype = c_char_p
    session, rank, tag, size = ctypes.c_void_p, c_uint32, c_uint64, ctypes.c_size_t
    library.nmad_close.argtypes = [session]
    library.nmad_rank.argtypes = library.nmad_size.argtypes = [session, ctypes.POINTER(c_uint32)]
    library.nmad_send.argtypes = [session, rank, c_uint32, tag, ctypes.c_void_p, size, ctypes.c_void_p]
    library.nmad_recv.argtypes = [session, rank, c_uint32, tag, c_uint32, ctypes.c_void_p, size]
    library.nmad_recv.argtypes += [ctypes.POINTER(Message)]
    return library


def main():
    library = load()

    def check(code):
        if code < 0:
            sys.exit(library.nmad_last_error().decode())

    session, rank, size = ctypes.c_void_p(), c_uint32(), c_uint32()
    check(library.nmad_open(byref(session)))
    check(library.nmad_rank(session, byref(rank)))
    check(library.nmad_size(session, byref(size)))
    if rank.value > 0:
        words = b"hello from Python"
        check(library.nmad_send(session, 0, 0, HELLO, words, len(words), None))
    for _ in range(1, size.value if rank.value == 0 else 1):
        buffer, message = ctypes.create_string_buffer(64), Message()
        check(library.nmad_recv(session, ANY_RANK, 0, HELLO, 0, buffer, len(buffer), byref(message)))
        print(f"rank {message.rank} says {buffer.raw[:message.received].decode()}", flush=True)
    check(library.nmad_close(session))


if __name__ == "__main__":
    main()

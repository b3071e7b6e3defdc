"""Messages over every network of a node at once.

    import newmadeleine

    with newmadeleine.Session() as session:
        if session.rank == 0:
            session.send(b"hello", to=1, tag=7)
        else:
            buffer = bytearray(64)
            message = session.recv(buffer, source=0, tag=7)
            print(bytes(buffer[:len(message)]))

Start it with `nmad run -n 2 python3 program.py`.
"""

import atexit

from ._native import (
    CancelledError,
    ClosedError,
    Error,
    LaunchError,
    Message,
    PeerLostError,
    RailError,
    Request,
    Session,
    SettingError,
    TruncatedError,
    __version__,
    close_all,
    wait_all,
    wait_any,
)

# A program that ends without closing its session has left the job all the same.
atexit.register(close_all)
del atexit, close_all

__all__ = [
    "CancelledError",
    "ClosedError",
    "Error",
    "LaunchError",
    "Message",
    "PeerLostError",
    "RailError",
    "Request",
    "Session",
    "SettingError",
    "TruncatedError",
    "__version__",
    "wait_all",
    "wait_any",
]

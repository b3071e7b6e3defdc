"""What the module promises, tried by one rank alone (`alone`) or by two. Rank 0 says when all is done."""

import array
import gc
import os
import signal
import sys
import threading
import time

import newmadeleine as nm

LARGE = 1 << 20


def fails(kind, call, *words):
    """The call raises this kind of exception, with these words in its text."""
    try:
        call()
    except kind as error:
        missing = [word for word in words if word not in str(error)]
        assert not missing, (missing, str(error))
    else:
        raise AssertionError(f"{kind.__name__} was not raised")


def alone():
    fails(nm.SettingError, lambda: nm.Session(strategi="fifo"), "no such setting", "strategy")
    fails(nm.SettingError, lambda: nm.Session(strategy="fifoo"), "known: fifo")
    assert issubclass(nm.SettingError, nm.Error)
    session = nm.Session(strategy="fifo", chunk=65536)
    assert (session.rank, session.size, repr(session)) == (0, 1, "Session(rank=0, size=1)")
    fails(ValueError, lambda: session.send(b"", to=7), "no rank 7")
    fails(TypeError, lambda: session.recv(b"read-only"), "read-only")
    fails(TypeError, lambda: session.send("text", to=0))
    fails(BufferError, lambda: session.send(memoryview(b"abcdef")[::2], to=0), "one piece")
    fails(ValueError, lambda: session.irecv(bytearray(1), tag=50).wait(timeout=-1), "timeout")
    to_itself(session)
    interrupted(session)
    session.close()
    session.close()
    assert repr(session) == "Session(closed)"
    fails(nm.ClosedError, lambda: session.send(b"", to=0))
    print("module: alone")


def to_itself(session):
    buffer = bytearray(8)
    request = session.irecv(buffer, tag=1)
    assert request.test() is None and request.wait(timeout=0.01) is None
    fails(BufferError, lambda: buffer.extend(b"grows"))
    session.send(b"abc", to=0, tag=1)
    message = request.wait()
    assert (message.source, message.tag, len(message)) == (0, 1, 3), message
    assert buffer[:3] == b"abc" and request.wait() == message == request.test()
    buffer.extend(b"free again")
    request = session.irecv(bytearray(1), tag=2)
    assert request.cancel()
    fails(nm.CancelledError, request.wait)
    session.send(b"too long", to=0, tag=3)
    assert len(session.probe(tag=3)) == 8 and session.probe(tag=4) is None
    fails(nm.TruncatedError, lambda: session.recv(bytearray(2), tag=3), "does not fit")


def interrupted(session):
    """A wait ends with the exception of a signal's handler."""

    def handler(*_):
        raise InterruptedError("as asked")

    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    fails(InterruptedError, lambda: session.recv(bytearray(1), tag=99), "as asked")


def exchange(session):
    """Both directions at once, numbers and all."""
    other = 1 - session.rank
    mine = array.array("d", [session.rank + 0.5] * 1000)
    theirs = array.array("d", bytes(8000))
    requests = [session.irecv(theirs, source=other, tag=1), session.isend(mine, to=other, tag=1)]
    received, _ = nm.wait_all(requests, timeout=30)
    assert len(received) == 8000 and theirs[999] == other + 0.5
    place, message = nm.wait_any(requests)
    assert place == 0 and message == received
    assert nm.wait_any([]) is None and nm.wait_all([]) == []


def forgotten(session):
    """A request that nobody keeps still has its memory."""
    other = 1 - session.rank
    session.irecv(bytearray(LARGE), source=other, tag=2)
    gc.collect()
    session.send(bytes(LARGE), to=other, tag=2)
    kept = bytearray(4)
    session.isend(b"last", to=other, tag=3)
    session.recv(kept, source=other, tag=3)
    assert kept == b"last"


def others_run(session):
    """Threads of Python run while one waits."""
    other, steps = 1 - session.rank, []
    if session.rank == 1:
        time.sleep(0.3)
        session.send(b"x", to=other, tag=4)
        return
    waiting = threading.Thread(target=lambda: session.recv(bytearray(1), source=other, tag=4))
    waiting.start()
    while waiting.is_alive():
        steps.append(time.monotonic())
        time.sleep(0.001)
    assert len(steps) > 20, len(steps)


def main():
    # Without `with`: the session is left when Python ends.
    session = nm.Session()
    fails(nm.LaunchError, nm.Session, "joined its job already")
    exchange(session)
    forgotten(session)
    others_run(session)
    assert session.rails()[0]["name"] == "shm", session.rails()


if __name__ == "__main__":
    if sys.argv[1:] == ["alone"]:
        alone()
    else:
        main()
    if os.environ.get("PMI_RANK", "0") == "0":
        print("module: done")

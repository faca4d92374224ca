"""What the tests of shpd by itself share: a child to kill, a case without shp."""

import os
import signal
import struct

from arena_client import Client, LIBC
from shp_testing import Case, SHPD, published

NOBODY = 65534


def drop_capabilities():
    """All of this process's, its uid stays: capset(2) with empty sets."""
    version_3 = struct.pack("<II", 0x20080522, 0)
    number = {"x86_64": 126, "aarch64": 91}[os.uname().machine]
    assert LIBC.syscall(number, version_3, bytes(24)) == 0


class InChild:
    """Runs body(say) in a forked process; `lines` are what it said."""

    def __init__(self, body, uid=None):
        reader, writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                os.close(reader)
                if uid is not None:
                    os.setgroups([])
                    os.setgid(uid)
                    os.setuid(uid)
                def say(text):
                    os.write(writer, f"{text}\n".encode())
                os.set_inheritable(writer, True)
                body(say)
                status = 0
            except BaseException as error:
                os.write(2, f"child: {error!r}\n".encode())
            finally:
                os._exit(status)
        os.close(writer)
        self.output = os.fdopen(reader)

    def hear(self, text):
        line = self.output.readline().rstrip("\n")
        assert line == text, f"heard {line!r}, not {text!r}"

    def wait(self):
        self.output.close()
        return os.waitpid(self.pid, 0)[1]

    def kill(self, number=signal.SIGKILL):
        os.kill(self.pid, number)
        return self.wait()


class DaemonCase(Case):
    needs = (SHPD,)

    def setUp(self):
        super().setUp()
        self.out.mkdir()

    def client(self, daemon, **options):
        return Client(daemon.socket, **options)

    def one_file(self):
        (file,) = published(self.out)
        return file

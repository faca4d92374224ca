"""shpd by itself: every way in which a recorded process can end."""

import os
import signal
import time

from arena_client import Client, OK
from daemon_testing import DaemonCase, InChild
from shp_testing import closed_paths, main, published


class Ends(DaemonCase):
    def recording_child(self, daemon, last, before_last=lambda client: None):
        def body(say):
            client = Client(daemon.socket)
            assert client.start(self.out).code == OK
            for _ in range(50):
                client.rings[0].span("done")
            client.rings[0].open(3, "open")
            before_last(client)
            say("ready")
            last(client)
        child = InChild(body)
        child.hear("ready")
        return child

    def check_end(self, reason, complete, **known):
        file = self.one_file()
        self.assertEqual(file.count("done"), 50, file.metadata)
        meta = file.metadata
        self.assertEqual(meta["end_reason"], reason)
        self.assertIs(meta["complete"], complete)
        for key in ("exit_code", "exit_signal"):
            self.assertEqual(meta.get(key), known.get(key))
        self.assertEqual(meta["dropped"]["unfinished"], 1)
        self.assertEqual([s["name"] for s in file.open_spans], ["open"])
        self.assertEqual([s["name"] for s in meta["open_spans"]], ["open"])
        return file

    def test_sigkill(self):
        child = self.recording_child(self.daemon(), lambda c: time.sleep(60))
        child.kill()
        self.check_end("killed", False, exit_signal=9)

    def test_segmentation_fault(self):
        child = self.recording_child(self.daemon(), lambda c: time.sleep(60))
        child.kill(signal.SIGSEGV)
        self.check_end("killed", False, exit_signal=11)

    def test_exit_without_stop(self):
        child = self.recording_child(self.daemon(), lambda c: os._exit(3))
        child.wait()
        self.check_end("exit", True, exit_code=3)

    def test_a_client_that_closed_all_its_descriptors(self):
        def last(client):
            os.closerange(3, 1000)
            time.sleep(0.5)
            client.rings[0].span("after closing")
            time.sleep(60)
        child = self.recording_child(self.daemon(), last)
        time.sleep(1)
        self.assertEqual(closed_paths(self.out), [])
        child.kill()
        file = self.check_end("killed", False, exit_signal=9)
        self.assertEqual(file.count("after closing"), 1)

    def test_exec(self):
        child = self.recording_child(
            self.daemon(), lambda c: os.execv("/bin/sleep", ["sleep", "60"]))
        file = self.check_end("exec", True)
        self.assertEqual(file.metadata["host_pid"], child.pid)
        child.kill()

    def test_a_fork_that_keeps_the_connection_does_not_end_it(self):
        def last(client):
            if os.fork() == 0:
                time.sleep(1.0)
                os._exit(0)
            client.rings[0].span("parent")
            os._exit(0)
        self.recording_child(self.daemon(), last).wait()
        file = self.check_end("exit", True, exit_code=0)
        self.assertEqual(file.count("parent"), 1)

    def test_a_new_session_of_one_process_ends_the_old(self):
        def last(client):
            fresh = Client(client.path)
            assert fresh.start(self.out, "second.jsonl").code == OK
            fresh.rings[0].span("second")
            assert fresh.stop().code == OK
        self.recording_child(self.daemon(), last).wait()
        first, second = published(self.out, 2)
        self.assertEqual(first.metadata["end_reason"], "exec")
        self.assertEqual(first.count("done"), 50)
        self.assertEqual(second.metadata["end_reason"], "stop")
        self.assertEqual(second.names(), ["second"])

    def test_sigterm_of_the_daemon_publishes_everything(self):
        daemon = self.daemon()
        client = self.client(daemon)
        client.start(self.out)
        client.rings[0].span("kept")
        daemon.stop()
        (file,) = published(self.out)
        self.assertEqual(file.names(), ["kept"])
        self.assertEqual(file.metadata["end_reason"], "daemon_stopped")
        self.assertIs(file.metadata["complete"], False)
        self.assertFalse(daemon.socket.exists())

    def test_many_clients_at_once(self):
        daemon = self.daemon()
        def body(say):
            client = Client(daemon.socket)
            name = f"host_{os.getpid()}.jsonl"
            assert client.start(self.out, name).code == OK
            for _ in range(500):
                client.rings[0].span("step")
            assert client.stop().written == 500
        children = [InChild(body) for _ in range(16)]
        self.assertEqual([child.wait() for child in children], [0] * 16)
        for file in published(self.out, 16):
            self.assertEqual(file.count("step"), 500)


if __name__ == "__main__":
    main()

"""The predecessor's behaviours, one function a rule: python_rules_test.py runs
them in processes of their own against our package and the predecessor itself.

A rule returns something that JSON can say. Its expected value stands beside it,
worked out by hand. `theirs` is what the predecessor gives where we differ on
purpose (the docstring says why), ABSENT where it cannot run the rule.

    python_rules.py FOLDER      prints {rule: outcome} as JSON

Runs on CPython 3.8 and newer; must not import anything of the tests.
"""

import asyncio
import contextlib
import functools
import hashlib
import inspect
import json
import math
import os
from pathlib import Path
import pickle
import re
import shutil
import sys
import threading
import time
import traceback
import warnings

RULES = {}
SAME = "the same"
ABSENT = "cannot run it"
FOLDER = None


def rule(sentence, expected, theirs=SAME):
    def add(function):
        assert sentence not in RULES, sentence
        RULES[sentence] = (function, expected, theirs)
        return function
    return add


# ---- helpers ------------------------------------------------------------------

def raised(function, *args, **kwargs):
    """[type, message] of what a call raises; "nothing raised"."""
    try:
        function(*args, **kwargs)
    except BaseException as error:
        return [type(error).__name__, str(error)]
    return "nothing raised"


def raised_type(function, *args, **kwargs):
    outcome = raised(function, *args, **kwargs)
    return outcome[0] if isinstance(outcome, list) else outcome


def read(path):
    with open(path, encoding="utf-8") as stream:
        lines = [json.loads(line) for line in stream]
    return lines[0], [row for row in lines if row["type"] == "span"]


def recorded(shp, body, **options):
    """Runs body() in a session: (metadata, span rows)."""
    shp.start(FOLDER, **options)
    try:
        body()
    finally:
        path = shp.stop()
    return read(path)


def one(shp, name, *attrs):
    shp.span_end(shp.span_start(name, *attrs))


def args_of(shp, *attrs):
    """The args of one span that was given these attrs."""
    return recorded(shp, lambda: one(shp, "s", *attrs))[1][0]["args"]


def warned(shp, body):
    """(names and args of the spans, what stop() warned of)."""
    shp.start(FOLDER)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        body()
        path = shp.stop()
    rows = [[row["name"], row["args"]] for row in read(path)[1]]
    return rows, [[w.category.__name__, str(w.message)] for w in caught]


def forked(function):
    """What function() returns in a forked child."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            text = json.dumps(function())
        except BaseException:
            text = json.dumps(traceback.format_exc())
        os.write(writer, text.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        text = stream.read()
    os.waitpid(pid, 0)
    return json.loads(text)


def collector_of(shp):
    from importlib import import_module
    return import_module(shp.__name__ + ".collector")


def folder(name):
    path = Path(FOLDER) / name
    path.mkdir(parents=True, exist_ok=True)
    return path


# ---- start and stop ------------------------------------------------------------

@rule("start returns the absolute path that the file will have", True)
def _(shp):
    path = shp.start(FOLDER)
    shp.stop()
    form = rf"python_host_{os.getpid()}_[0-9a-f]{{32}}\.jsonl"
    return (isinstance(path, Path) and path.parent == Path(FOLDER).resolve()
            and re.fullmatch(form, path.name) is not None)


@rule("the file is there when stop returns and not before", [False, True, True])
def _(shp):
    path = shp.start(FOLDER)
    before = path.exists()
    stopped = shp.stop()
    return [before, stopped.exists(), stopped == path]


@rule("stop leaves no other file behind", 1)
def _(shp):
    place = folder("alone")
    shp.start(place)
    shp.stop()
    return len(list(place.iterdir()))


@rule("the session id is the file's stem unless it is given", [True, "mine"])
def _(shp):
    path = shp.start(FOLDER)
    shp.stop()
    given = recorded(shp, lambda: None, session_id="mine")[0]
    return [read(path)[0]["session_id"] == path.stem, given["session_id"]]


@rule("a session id may be any text", "söme thing/with … \U0001f600")
def _(shp):
    return recorded(shp, lambda: None,
                    session_id="söme thing/with … \U0001f600")[0]["session_id"]


@rule("an empty session id is refused",
      ["ValueError", "session_id must be a non-empty string"])
def _(shp):
    return raised(shp.start, FOLDER, session_id="")


@rule("a session id that is no string is refused",
      ["ValueError", "session_id must be a non-empty string"])
def _(shp):
    return raised(shp.start, FOLDER, session_id=5)


@rule("a second start is refused",
      ["RuntimeError", "Host collection is already active in this process"])
def _(shp):
    shp.start(FOLDER)
    outcome = raised(shp.start, FOLDER)
    shp.stop()
    return outcome


@rule("a second start is refused before its session id is looked at",
      ["RuntimeError", "Host collection is already active in this process"])
def _(shp):
    shp.start(FOLDER)
    outcome = raised(shp.start, FOLDER, session_id="")
    shp.stop()
    return outcome


@rule("stop without a start is refused",
      ["RuntimeError", "Host collection is not active"])
def _(shp):
    return raised(shp.stop)


@rule("a second stop is refused",
      ["RuntimeError", "Host collection is not active"])
def _(shp):
    shp.start(FOLDER)
    shp.stop()
    return raised(shp.stop)


@rule("a refused start leaves no session", True)
def _(shp):
    raised(shp.start, FOLDER, session_id="")
    return raised_type(shp.stop) == "RuntimeError"


@rule("a session may follow another, in a file of its own", [1, 2, True])
def _(shp):
    shp.start(FOLDER)
    one(shp, "a")
    first = shp.stop()
    shp.start(FOLDER)
    one(shp, "b")
    one(shp, "c")
    second = shp.stop()
    return [len(read(first)[1]), len(read(second)[1]), first != second]


@rule("start makes the directory and its parents", True)
def _(shp):
    place = Path(FOLDER) / "not" / "yet" / "there"
    path = shp.start(str(place))
    shp.stop()
    return path.parent == place.resolve() and place.is_dir()


@rule("start takes a relative directory from where it is called", True)
def _(shp):
    place, old = folder("relative"), os.getcwd()
    os.chdir(place)
    try:
        path = shp.start("sub")
        os.chdir("/")
        return shp.stop() == place.resolve() / "sub" / path.name
    finally:
        os.chdir(old)


@rule("start follows links to the directory", True)
def _(shp):
    place = folder("real")
    link = Path(FOLDER) / "link"
    link.symlink_to(place)
    path = shp.start(link)
    shp.stop()
    return path.parent == place.resolve()


@rule("a file in the directory's place is named by a FileExistsError",
      ["FileExistsError", True])
def _(shp):
    place = Path(FOLDER) / "file"
    place.write_text("")
    try:
        shp.start(place)
    except OSError as error:
        return [type(error).__name__, error.filename == str(place.resolve())]


@rule("a directory under a file is a NotADirectoryError", "NotADirectoryError")
def _(shp):
    (Path(FOLDER) / "file2").write_text("")
    return raised_type(shp.start, Path(FOLDER) / "file2" / "sub")


@rule("a directory that is no path is a TypeError", ["TypeError", "TypeError"])
def _(shp):
    return [raised_type(shp.start, 5), raised_type(shp.start, None)]


@rule("start takes one argument by position and session_id by name",
      ["TypeError", "start() takes 1 positional argument but 2 were given"])
def _(shp):
    return raised(shp.start, FOLDER, "id")


@rule("start needs a directory",
      ["TypeError",
       "start() missing 1 required positional argument: 'output_dir'"])
def _(shp):
    return raised(shp.start)


@rule("stop takes no argument",
      ["TypeError", "stop() takes 0 positional arguments but 1 was given"])
def _(shp):
    return raised(shp.stop, 1)


@rule("start takes its directory by name", True)
def _(shp):
    path = shp.start(output_dir=FOLDER, session_id=None)
    return shp.stop() == path


# ---- what a file holds -----------------------------------------------------------

@rule("the metadata is the first line and starts with these keys",
      ["type", "schema_version", "session_id", "pid", "hostname", "clock",
       "start_monotonic_ns", "start_realtime_ns", "clock_uncertainty_ns",
       "written_spans", "dropped_spans", "stop_monotonic_ns",
       "stop_realtime_ns", "complete"])
def _(shp):
    return list(recorded(shp, lambda: None)[0])[:14]


@rule("the metadata says whose session it was", ["metadata", 3, True, True,
                                                 "monotonic", True])
def _(shp):
    import socket
    meta = recorded(shp, lambda: None)[0]
    return [meta["type"], meta["schema_version"], meta["pid"] == os.getpid(),
            meta["hostname"] == socket.gethostname(), meta["clock"],
            meta["complete"]]


@rule("the session's times bracket it on both clocks", [True, True, True])
def _(shp):
    before, before_real = time.monotonic_ns(), time.time_ns()
    meta = recorded(shp, lambda: time.sleep(0.01))[0]
    after, after_real = time.monotonic_ns(), time.time_ns()
    ms = 1000000
    return [before - ms < meta["start_monotonic_ns"]
            < meta["stop_monotonic_ns"] < after + ms,
            before_real - ms < meta["start_realtime_ns"]
            < meta["stop_realtime_ns"] < after_real + ms,
            0 <= meta["clock_uncertainty_ns"] < 100 * ms]


@rule("spans are counted, and those that did not end", [3, 2, 3])
def _(shp):
    def body():
        for _ in range(3):
            one(shp, "ends")
        shp.span_start("open")
        shp.span_start("open")
    meta, rows = recorded(shp, body)
    return [meta["written_spans"], meta["dropped_spans"], len(rows)]


@rule("a span's row has these keys and no others",
      ["type", "id", "pid", "tid", "name", "start_ns", "duration_ns", "args"])
def _(shp):
    return list(recorded(shp, lambda: one(shp, "s"))[1][0])


@rule("a span's row says process and thread", [True, True, "span", {}])
def _(shp):
    row = recorded(shp, lambda: one(shp, "s"))[1][0]
    return [row["pid"] == os.getpid(),
            row["tid"] == threading.get_native_id(), row["type"], row["args"]]


@rule("rows are numbered from 1", [1, 2, 3, 4])
def _(shp):
    rows = recorded(shp, lambda: [one(shp, "s") for _ in range(4)])[1]
    return [row["id"] for row in rows]


@rule("a span's times are CLOCK_MONOTONIC around its calls", [True, True])
def _(shp):
    times = []

    def body():
        times.append(time.monotonic_ns())
        span_id = shp.span_start("s")
        time.sleep(0.02)
        shp.span_end(span_id)
        times.append(time.monotonic_ns())
    row = recorded(shp, body)[1][0]
    slack = 20000
    return [times[0] - slack <= row["start_ns"]
            and row["start_ns"] + row["duration_ns"] <= times[1] + slack,
            19000000 < row["duration_ns"]]


@rule("spans lie in their session", True)
def _(shp):
    meta, rows = recorded(shp, lambda: [one(shp, "s") for _ in range(100)])
    return all(meta["start_monotonic_ns"] <= row["start_ns"]
               and row["start_ns"] + row["duration_ns"]
               <= meta["stop_monotonic_ns"] for row in rows)


@rule("every thread's spans carry its id", [True, 4, 40])
def _(shp):
    tids = set()

    def work():
        tids.add(threading.get_native_id())
        for _ in range(10):
            one(shp, "s")
        barrier.wait()
    barrier = threading.Barrier(4)

    def body():
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    rows = recorded(shp, body)[1]
    return [{row["tid"] for row in rows} == tids, len(tids), len(rows)]


# ---- span_start and span_end ----------------------------------------------------

@rule("span_start gives -1 when nothing records", -1)
def _(shp):
    return shp.span_start("s")


@rule("span_end gives None, recording or not", [None, None, None])
def _(shp):
    outcomes = [shp.span_end(-1)]
    recorded(shp, lambda: outcomes.extend(
        [shp.span_end(shp.span_start("s")), shp.span_end(-1)]))
    return outcomes


@rule("a span that began before the session is none of it", 0)
def _(shp):
    early = shp.span_start("early")
    return len(recorded(shp, lambda: shp.span_end(early))[1])


@rule("ids are ints of zero and more", [True, True])
def _(shp):
    ids = []

    def body():
        ids.extend(shp.span_start("s") for _ in range(5))
        for span_id in ids:
            shp.span_end(span_id)
    recorded(shp, body)
    return [all(type(i) is int and i >= 0 for i in ids), len(set(ids)) == 5]


@rule("spans need not nest", [["a", True], ["b", True]])
def _(shp):
    def body():
        a = shp.span_start("a")
        b = shp.span_start("b")
        shp.span_end(a)
        shp.span_end(b)
    rows = sorted(recorded(shp, body)[1], key=lambda row: row["name"])
    ends = [row["start_ns"] + row["duration_ns"] for row in rows]
    return [[row["name"], ends[0] <= ends[1]] for row in rows]


@rule("hundreds of spans may be open at once", 400)
def _(shp):
    def body():
        for span_id in [shp.span_start("s") for _ in range(400)]:
            shp.span_end(span_id)
    return len(recorded(shp, body)[1])


@rule("arguments go by name too", {"k": 1})
def _(shp):
    def body():
        shp.span_end(span_id=shp.span_start(attrs={"k": 1}, name="s"))
    return recorded(shp, body)[1][0]["args"]


@rule("span_start needs a name",
      ["TypeError",
       "span_start() missing 1 required positional argument: 'name'"])
def _(shp):
    return raised(shp.span_start)


@rule("span_start takes two arguments",
      ["TypeError", "span_start() takes from 1 to 2 positional arguments but "
       "3 were given"])
def _(shp):
    return raised(shp.span_start, "s", None, 1)


@rule("span_start knows its arguments' names",
      ["TypeError",
       "span_start() got an unexpected keyword argument 'label'"])
def _(shp):
    return raised(functools.partial(shp.span_start, "s", label=1))


@rule("an argument comes once",
      ["TypeError", "span_start() got multiple values for argument 'name'"])
def _(shp):
    return raised(functools.partial(shp.span_start, "s", name="t"))


@rule("span_end takes one argument",
      ["TypeError",
       "span_end() takes 1 positional argument but 2 were given"])
def _(shp):
    return raised(shp.span_end, 1, 2)


@rule("span_end needs an id",
      ["TypeError",
       "span_end() missing 1 required positional argument: 'span_id'"])
def _(shp):
    return raised(shp.span_end)


@rule("an id that is no int is a TypeError while recording",
      ["nothing raised", "TypeError"])
def _(shp):
    outcomes = [raised_type(shp.span_end, "x")]

    def body():
        one(shp, "s")
        outcomes.append(raised_type(shp.span_end, "x"))
    recorded(shp, body)
    return outcomes


@rule("an ended id does nothing: the first end counts", True, theirs=False)
def _(shp):
    """Theirs moved the end; the design says that it does nothing."""
    def body():
        span_id = shp.span_start("s")
        shp.span_end(span_id)
        time.sleep(0.02)
        shp.span_end(span_id)
    return recorded(shp, body)[1][0]["duration_ns"] < 15000000


@rule("an id of nobody does nothing", ["nothing raised", 1],
      theirs=["IndexError", 1])
def _(shp):
    """Theirs raised: the program comes first."""
    outcomes = []

    def body():
        one(shp, "s")
        outcomes.append(raised_type(shp.span_end, 1 << 62))
        with contextlib.suppress(IndexError):
            shp.span_end(1 << 80)
            shp.span_end(123456)
    outcomes.append(len(recorded(shp, body)[1]))
    return outcomes


@rule("another thread's id does nothing", [1, 1], theirs=ABSENT)
def _(shp):
    """Theirs took the id for one of the ending thread's own."""
    def body():
        span_id = shp.span_start("s", {"a": 1})
        thread = threading.Thread(
            target=lambda: (one(shp, "t"), shp.span_end(span_id)))
        thread.start()
        thread.join()
    meta, rows = recorded(shp, body)
    return [len(rows), meta["dropped_spans"]]


@rule("an id of an earlier session does nothing", [["t"], 0], theirs=ABSENT)
def _(shp):
    """Theirs took the id for one of the running session's."""
    old = []
    recorded(shp, lambda: old.append(shp.span_start("s", {"a": 1})))

    def body():
        span_id = shp.span_start("t")
        shp.span_end(old[0])
        shp.span_end(span_id)
    meta, rows = recorded(shp, body)
    return [[row["name"] for row in rows], meta["dropped_spans"]]


# ---- names ----------------------------------------------------------------------

@rule("names are any text, however long",
      ["grün …\u2028 \U0001f600", 'quo"te\\back\nline\ttab\x01', 100000])
def _(shp):
    names = ["grün …\u2028 \U0001f600", 'quo"te\\back\nline\ttab\x01',
             "x" * 100000]
    rows = recorded(shp, lambda: [one(shp, name) for name in names])[1]
    found = [row["name"] for row in rows]
    return [found[0], found[1], len(found[2])]


@rule("a subclass of str is a name", "text")
def _(shp):
    class Text(str):
        pass
    return recorded(shp, lambda: one(shp, Text("text")))[1][0]["name"]


BAD_NAMES = [[["good", {}]],
             [["RuntimeWarning", "service_host_profiling: 3 spans were not "
               "recorded for their names (first: it is empty)"]]]


@rule("spans with a bad name are counted and warned of, never the file's end",
      [BAD_NAMES, -1],
      theirs=["ValueError", "Span name must be a non-empty string without NUL"])
def _(shp):
    """Theirs lost the file for one bad name."""
    ids = []

    def body():
        ids.append(shp.span_start(""))
        one(shp, "a\0b")
        one(shp, 5)
        one(shp, "good")
        for span_id in ids:
            shp.span_end(span_id)
    try:
        return [warned(shp, body), ids[0]]
    except ValueError as error:
        return [type(error).__name__, str(error)]


@rule("lone surrogates in names and args come out as escapes",
      ["a\\ud800b", {"k\\udfff": "\\udc80"}], theirs="UnicodeEncodeError")
def _(shp):
    """Theirs lost the file."""
    try:
        row = recorded(shp, lambda: one(shp, "a\ud800b",
                                        {"k\udfff": "\udc80"}))[1][0]
    except UnicodeEncodeError as error:
        return type(error).__name__
    return [row["name"], row["args"]]


# ---- attributes -------------------------------------------------------------------

@rule("scalars are kept as JSON has them",
      {"i": -7, "f": 2.5, "s": "text", "t": True, "n": None, "big": 10 ** 30})
def _(shp):
    return args_of(shp, {"i": -7, "f": 2.5, "s": "text", "t": True, "n": None,
                         "big": 10 ** 30})


@rule("lists, tuples and dicts nest",
      {"l": [1, [2, {"a": [3]}]], "d": {"e": {}, "f": []}})
def _(shp):
    return args_of(shp, {"l": [1, (2, {"a": (3,)})], "d": {"e": {}, "f": []}})


@rule("keys become strings as json has them",
      {"2": "int", "2.5": "float", "true": "bool", "null": "none"})
def _(shp):
    return args_of(shp, {2: "int", 2.5: "float", True: "bool", None: "none"})


@rule("no attrs, None and an empty dict are no args", [{}, {}, {}])
def _(shp):
    return [args_of(shp), args_of(shp, None), args_of(shp, {})]


@rule("what is put into the dict while the span is open is there",
      {"early": 1, "late": 2})
def _(shp):
    def body():
        attrs = {"early": 1}
        span_id = shp.span_start("s", attrs)
        attrs["late"] = 2
        shp.span_end(span_id)
    return recorded(shp, body)[1][0]["args"]


@rule("what is put into the dict after the end is not there", {"early": 1},
      theirs={"early": 1, "late": 2})
def _(shp):
    """Encoded when the span ends, so that it survives a crash."""
    def body():
        attrs = {"early": 1}
        shp.span_end(shp.span_start("s", attrs))
        attrs["late"] = 2
    return recorded(shp, body)[1][0]["args"]


@rule("a callable is asked once, after the session is over",
      [0, 1, {"answer": 42}])
def _(shp):
    calls = []

    def attrs():
        calls.append(1)
        return {"answer": 42}
    shp.start(FOLDER)
    one(shp, "s", attrs)
    before = len(calls)
    row = read(shp.stop())[1][0]
    return [before, len(calls), row["args"]]


@rule("a callable that returns None gives no args", {})
def _(shp):
    return args_of(shp, lambda: None)


@rule("callables in a dict are asked one by one", {"a": 1, "b": [2], "c": "x"})
def _(shp):
    return args_of(shp, {"a": lambda: 1, "b": lambda: [2], "c": "x"})


@rule("callables in what a callable returns are asked too",
      {"a": {"b": 1}, "c": 2})
def _(shp):
    return args_of(shp, lambda: {"a": lambda: {"b": 1}, "c": 2})


@rule("callables of spans that did not end are not asked", [])
def _(shp):
    calls = []
    recorded(shp, lambda: shp.span_start("s", lambda: calls.append(1)))
    return calls


@rule("while callables are asked nothing records", {"id": -1})
def _(shp):
    return args_of(shp, lambda: {"id": shp.span_start("inner")})


@rule("while callables are asked the session is over",
      {"said": "Host collection is not active", "active": True})
def _(shp):
    collector = collector_of(shp)

    def attrs():
        return {"said": raised(shp.stop)[1],
                "active": collector._active is None}
    return args_of(shp, attrs)


def bad_attrs(shp, attrs):
    try:
        rows, caught = warned(shp, lambda: (one(shp, "bad", attrs),
                                            one(shp, "good", {"a": 1})))
    except Exception as error:
        return type(error).__name__
    meaning = [text.partition("(first: ")[2].rstrip(")")
               for _, text in caught]
    return [sorted(rows) == [["bad", {}], ["good", {"a": 1}]], meaning]


@rule("attrs of another type cost their span the args, with a warning",
      [True, ["attrs must be a dict, a callable or None, not list"]],
      theirs="ValueError")
def _(shp):
    """Theirs lost the file, here and below."""
    return bad_attrs(shp, [1])


@rule("a value that JSON does not have costs its span the args",
      [True, ["Object of type set is not JSON serializable"]],
      theirs="TypeError")
def _(shp):
    return bad_attrs(shp, {"a": {1}})


@rule("a key that JSON does not have costs its span the args",
      [True, ["keys must be str, int, float, bool or None, not tuple"]],
      theirs="TypeError")
def _(shp):
    return bad_attrs(shp, {(1,): 1})


@rule("NaN and infinity cost their span the args",
      [[True, ["Out of range float values are not JSON compliant"]]] * 2,
      theirs=["ValueError", "ValueError"])
def _(shp):
    return [bad_attrs(shp, {"a": math.nan}), bad_attrs(shp, {"a": -math.inf})]


@rule("a circle costs its span the args",
      [True, ["Circular reference, or nested more than 100 deep"]],
      theirs="ValueError")
def _(shp):
    circle = {}
    circle["self"] = circle
    return bad_attrs(shp, circle)


@rule("a callable that raises costs its span the args",
      [[True, ["ZeroDivisionError: division by zero"]]] * 2,
      theirs=["ZeroDivisionError", "ZeroDivisionError"])
def _(shp):
    return [bad_attrs(shp, lambda: 1 / 0), bad_attrs(shp, {"a": lambda: 1 / 0})]


@rule("a callable that returns no dict costs its span the args",
      [True, ["a callable for attrs returned no dict"]], theirs="ValueError")
def _(shp):
    return bad_attrs(shp, lambda: 5)


@rule("an interruption in a callable is raised, and the file is published",
      ["KeyboardInterrupt", 1, True], theirs=["KeyboardInterrupt", 0, True])
def _(shp):
    def interrupt():
        raise KeyboardInterrupt
    place = folder("interrupted")
    shp.start(place)
    one(shp, "s", interrupt)
    outcome = raised_type(shp.stop)
    return [outcome, len(list(place.glob("*.jsonl"))),
            raised_type(shp.stop) == "RuntimeError"]


# ---- profile ------------------------------------------------------------------------

@rule("a profiled function gets its arguments and gives its result",
      [[1, 2, [3], {"k": 4}], ["f"], {"x": 1}])
def _(shp):
    @shp.profile("f", {"x": 1})
    def f(a, b=0, *rest, **named):
        return [a, b, list(rest), named]
    results = []
    rows = recorded(shp, lambda: results.append(f(1, 2, 3, k=4)))[1]
    return [results[0], [row["name"] for row in rows], rows[0]["args"]]


@rule("a profiled function keeps what is known of it",
      ["f", "says", True, True, 7, True, "(a: int, b=2) -> str"])
def _(shp):
    def f(a: int, b=2) -> "str":
        """says"""
    f.extra = 7
    g = shp.profile("name")(f)
    signature = str(inspect.signature(g)).replace("'str'", "str")
    return [g.__name__, g.__doc__, g.__module__ == __name__,
            g.__qualname__.endswith("f"), g.extra, g.__wrapped__ is f,
            signature]


@rule("an exception passes through a profiled function, and ends its span",
      [["KeyError", "'k'"], ["f"]])
def _(shp):
    @shp.profile("f")
    def f():
        raise KeyError("k")
    outcome = []
    rows = recorded(shp, lambda: outcome.append(raised(f)))[1]
    return [outcome[0], [row["name"] for row in rows]]


@rule("a profiled function runs when nothing records", 3)
def _(shp):
    return shp.profile("f")(lambda a, b: a + b)(1, b=2)


@rule("profiled methods bind as functions do",
      [["self", 1], ["cls", 2], ["static", 3], ["get", 4], 4])
def _(shp):
    class Thing:
        @shp.profile("m")
        def method(self, x):
            return ["self" if isinstance(self, Thing) else "?", x]

        @classmethod
        @shp.profile("c")
        def of_class(cls, x):
            return ["cls" if cls is Thing else "?", x]

        @staticmethod
        @shp.profile("s")
        def static(x):
            return ["static", x]

        @property
        @shp.profile("p")
        def value(self):
            return ["get", 4]
    results = []

    def body():
        thing = Thing()
        results.extend([thing.method(1), Thing.of_class(2), Thing.static(3),
                        thing.value])
    return results + [len(recorded(shp, body)[1])]


@rule("a profiled function may call itself", [720, 7])
def _(shp):
    @shp.profile("factorial")
    def factorial(n):
        return 1 if n == 0 else n * factorial(n - 1)
    results = []
    rows = recorded(shp, lambda: results.append(factorial(6)))[1]
    return [results[0], len(rows)]


@rule("profiled attrs are asked for each call", [{"n": 1}, {"n": 2}])
def _(shp):
    asked = []

    @shp.profile("f", lambda: asked.append(1) or {"n": len(asked)})
    def f():
        pass
    return [row["args"] for row in recorded(shp, lambda: (f(), f()))[1]]


def _pickled():
    return 5


@rule("a profiled function is pickled by its name", [5, True])
def _(shp):
    global _pickled
    plain = _pickled
    _pickled = shp.profile("pickled")(plain)
    try:
        again = pickle.loads(pickle.dumps(_pickled))
        return [again(), again is _pickled]
    finally:
        _pickled = plain


SUSPENDING = ["TypeError", "profile supports synchronous functions only"]


@rule("profile takes coroutine functions", [True, 5, ["co"], True],
      theirs=SUSPENDING)
def _(shp):
    """Beyond the predecessor, here and below."""
    async def co():
        await asyncio.sleep(0.02)
        return 5
    outcome = raised(shp.profile("co"), co)
    if outcome != "nothing raised":
        return outcome
    profiled = shp.profile("co")(co)
    results = []
    rows = recorded(shp, lambda: results.append(asyncio.run(profiled())))[1]
    return [inspect.iscoroutinefunction(profiled), results[0],
            [row["name"] for row in rows],
            rows[0]["duration_ns"] > 15000000]


@rule("profile takes generator functions", [True, [0, "sent", 2], "end", 1],
      theirs=SUSPENDING)
def _(shp):
    def numbers():
        got = yield 0
        yield got
        yield 2
        return "end"
    outcome = raised(shp.profile("g"), numbers)
    if outcome != "nothing raised":
        return outcome
    profiled = shp.profile("g")(numbers)
    results = []

    def body():
        generator = profiled()
        items = [next(generator), generator.send("sent"), next(generator)]
        try:
            next(generator)
        except StopIteration as stop:
            results.extend([items, stop.value])
    rows = recorded(shp, body)[1]
    return [inspect.isgeneratorfunction(profiled), *results, len(rows)]


@rule("profile takes async generator functions",
      [True, [0, "sent"], "ValueError", ["closed", "closed"], 2],
      theirs=SUSPENDING)
def _(shp):
    log = []

    async def numbers():
        try:
            got = yield 0
            yield got
            yield 2
        finally:
            log.append("closed")
    outcome = raised(shp.profile("g"), numbers)
    if outcome != "nothing raised":
        return outcome
    profiled = shp.profile("g")(numbers)
    results = []

    async def use():
        generator = profiled()
        items = [await generator.asend(None), await generator.asend("sent")]
        try:
            await generator.athrow(ValueError("thrown"))
        except ValueError as error:
            results.extend([items, type(error).__name__])
        other = profiled()
        await other.asend(None)
        await other.aclose()
    rows = recorded(shp, lambda: asyncio.run(use()))[1]
    return [inspect.isasyncgenfunction(profiled), *results, log, len(rows)]


# ---- the context manager: ours only --------------------------------------------------

@rule("span is a context manager", [["s", {"a": 1}], ["s", {"a": 1}]],
      theirs=ABSENT)
def _(shp):
    def body():
        with shp.span("s", {"a": 1}):
            pass
        with shp.span(name="s", attrs={"a": 1}):
            pass
    return [[r["name"], r["args"]] for r in recorded(shp, body)[1]]


@rule("an exception passes through span, and ends it",
      [["KeyError", "'k'"], 1], theirs=ABSENT)
def _(shp):
    def body():
        with shp.span("s"):
            raise KeyError("k")
    outcome = []
    rows = recorded(shp, lambda: outcome.append(raised(body)))[1]
    return [outcome[0], len(rows)]


@rule("a span object may be entered again, also while it is open",
      [["s", True]] * 3, theirs=ABSENT)
def _(shp):
    def body():
        span = shp.span("s")
        with span:
            with span as again:
                pass
        with again:
            pass
    return [[r["name"], r["duration_ns"] >= 0]
            for r in recorded(shp, body)[1]]


@rule("a span's attrs may be set while it is open", [{"a": 1}, {"b": 2}],
      theirs=ABSENT)
def _(shp):
    def body():
        with shp.span("s", {}) as span:
            span.attrs["a"] = 1
        with shp.span("s") as span:
            span.attrs = {"b": 2}
    return [row["args"] for row in recorded(shp, body)[1]]


@rule("a span decorates a function", [3, "f", ["s"]], theirs=ABSENT)
def _(shp):
    @shp.span("s")
    def f(a):
        return a
    results = []
    rows = recorded(shp, lambda: results.append(f(3)))[1]
    return [results[0], f.__name__, [row["name"] for row in rows]]


# ---- processes ---------------------------------------------------------------------------

@rule("a forked child has no session and can have its own",
      [[True, -1, ["RuntimeError", "Host collection is not active"], ["child"],
        True], ["parent", "parent"]])
def _(shp):
    collector = collector_of(shp)

    def child():
        early = [collector._active is None, shp.span_start("lost"),
                 raised(shp.stop)]
        path = shp.start(FOLDER)
        one(shp, "child")
        meta, rows = read(shp.stop())
        return early + [[row["name"] for row in rows],
                        meta["pid"] == os.getpid()
                        and f"_{os.getpid()}_" in path.name]
    answers = []

    def body():
        one(shp, "parent")
        answers.append(forked(child))
        one(shp, "parent")
    rows = recorded(shp, body)[1]
    return [answers[0], [row["name"] for row in rows]]


@rule("attributes of the parent's spans are not the child's",
      [[["child", {}]], [{"asked": "parent"}]])
def _(shp):
    def child():
        shp.span_end(open_id)
        shp.start(FOLDER)
        one(shp, "child")
        return [[r["name"], r["args"]] for r in read(shp.stop())[1]]
    who = os.getpid()
    answers = []
    shp.start(FOLDER)
    one(shp, "s", lambda: {"asked": "parent" if os.getpid() == who else "?"})
    open_id = shp.span_start("open", {"a": 1})
    answers.append(forked(child))
    rows = read(shp.stop())[1]
    return answers + [[row["args"] for row in rows]]


# ---- what integrations use ------------------------------------------------------------------

@rule("collector._active is the running session", [True, True, True, True])
def _(shp):
    collector = collector_of(shp)
    before = collector._active
    path = shp.start(FOLDER)
    active = collector._active
    during = [active.path == path, active.pid == os.getpid()]
    shp.stop()
    return [before is None, *during, collector._active is None]


@rule("collector._lifecycle is a lock that start and stop take",
      [["started"], True])
def _(shp):
    collector = collector_of(shp)
    log = []
    with collector._lifecycle:
        with collector._lifecycle:
            thread = threading.Thread(
                target=lambda: (shp.start(FOLDER), log.append("started")))
            thread.start()
            time.sleep(0.05)
            waited = not log
    thread.join()
    shp.stop()
    return [log, waited]


@rule("the package has its functions and no others",
      ["AttributeError", True])
def _(shp):
    wanted = {"start", "stop", "span_start", "span_end", "profile",
              "is_enabled", "attach_torch_profiler", "attach_sglang"}
    return [raised_type(getattr, shp, "nothing"), wanted <= set(shp.__all__)]


@rule("the package says what it has not in the usual words", True)
def _(shp):
    return raised(getattr, shp, "nothing")[1] == (
        f"module {shp.__name__!r} has no attribute 'nothing'")


@rule("is_enabled says so", True)
def _(shp):
    return shp.is_enabled()


# ---- Torch ------------------------------------------------------------------------------------

LONG = "session_id must be a non-empty string of at most 128 characters"
CHARS = ("session_id may contain only ASCII letters, digits, underscore and "
         "hyphen")


@rule("a binding's session id is checked",
      [["ValueError", LONG], ["ValueError", LONG], ["ValueError", LONG],
       ["ValueError", CHARS], ["ValueError", CHARS], "nothing raised"])
def _(shp):
    return [raised(functools.partial(shp.attach_torch_profiler, FOLDER,
                                     session_id=word))
            for word in ("", "x" * 129, 5, "a/b", "ü", "A-z_0" * 25)]


@rule("a binding stages under .host_trace and starts nothing",
      [True, True, True, None, None])
def _(shp):
    binding = shp.attach_torch_profiler(FOLDER, session_id="abc")
    other = shp.attach_torch_profiler(FOLDER)
    return [binding.output_dir == Path(FOLDER).resolve() / ".host_trace/abc",
            re.fullmatch("[0-9a-f]{32}", other.session_id) is not None,
            binding.pid == os.getpid(), binding.db_path, binding.session_dir]


@rule("a binding starts a session of its id in its folder", [True, True, "s1"])
def _(shp):
    binding = shp.attach_torch_profiler(folder("t1"), session_id="s1")
    path = binding.start()
    shp.stop()
    return [path == binding.db_path, path.parent == binding.output_dir,
            read(path)[0]["session_id"]]


@rule("a binding starts once",
      ["RuntimeError", "This binding already owns a collection; create a new "
       "binding per capture"])
def _(shp):
    binding = shp.attach_torch_profiler(folder("t2"))
    binding.start()
    shp.stop()
    return raised(binding.start)


@rule("a binding belongs to one process",
      [["RuntimeError", "TorchBinding cannot be reused after fork; attach in "
        "each worker"]] * 2)
def _(shp):
    binding = shp.attach_torch_profiler(folder("t3"))
    return forked(lambda: [raised(binding.start),
                           raised(binding.archive, FOLDER)])


@rule("archive needs a start",
      ["RuntimeError", "No Host data is bound; call binding.start() first"])
def _(shp):
    return raised(shp.attach_torch_profiler(FOLDER).archive, folder("t4"))


@rule("archive needs a stop", "FileNotFoundError")
def _(shp):
    binding = shp.attach_torch_profiler(folder("t5"))
    binding.start()
    outcome = raised_type(binding.archive, folder("t5/capture"))
    shp.stop()
    return outcome


OUTSIDE = "Host capture directory must be under the Host output_root"


@rule("archive goes to a directory under the root, not to the staging",
      ["FileNotFoundError", ["ValueError", OUTSIDE], ["ValueError", OUTSIDE],
       ["ValueError", "Supply the Host capture directory, not the staging "
        "directory"]])
def _(shp):
    root = folder("t6")
    (root / "file").write_text("")
    binding = shp.attach_torch_profiler(root)
    binding.start()
    shp.stop()
    return [raised_type(binding.archive, root / "absent"),
            raised(binding.archive, folder("elsewhere")),
            raised(binding.archive, root / "file"),
            raised(binding.archive, binding.output_dir)]


def stopped_binding(shp, name, body=lambda: None):
    binding = shp.attach_torch_profiler(folder(name))
    binding.start()
    body()
    shp.stop()
    return binding, folder(name + "/capture")


@rule("archive moves the file into HOST_TRACE", [True, True, False, 1, True],
      theirs=ABSENT)
def _(shp):
    """Their archive needs parser.py, which was not handed down; so below."""
    binding, capture = stopped_binding(shp, "t7", lambda: one(shp, "s"))
    source = binding.db_path
    path = binding.archive(capture)
    return [path == capture.resolve() / "HOST_TRACE" / source.name,
            binding.db_path == path, source.exists(), len(read(path)[1]),
            [p.name for p in path.parent.iterdir()] == [path.name]]


@rule("archive says the same again, and refuses another place",
      [True, ["ValueError",
              "This session is already finalized to another location"]],
      theirs=ABSENT)
def _(shp):
    binding, capture = stopped_binding(shp, "t8")
    path = binding.archive(capture)
    return [binding.archive(capture) == path,
            raised(binding.archive, folder("t8/other"))]


@rule("archive replaces nobody's file",
      ["FileExistsError", True, "somebody's", True], theirs=ABSENT)
def _(shp):
    binding, capture = stopped_binding(shp, "t9")
    taken = folder("t9/capture/HOST_TRACE") / binding.db_path.name
    taken.write_text("somebody's")
    outcome = raised(binding.archive, capture)
    return [outcome[0], outcome[1] == ("Refusing to replace existing Host "
                                       f"data: {taken.resolve()}"),
            taken.read_text(), binding.db_path.exists()]


@rule("archive checks each row and the count", ["ValueError"] * 4,
      theirs=ABSENT)
def _(shp):
    outcomes = []
    edits = [lambda lines: lines[:-1],
             lambda lines: lines[:-1] + [lines[-1].replace('"id":2', '"id":1')],
             lambda lines: lines[:-1] + [lines[-1][:20]],
             lambda lines: lines[:-1] + [re.sub(
                 '"duration_ns":[0-9]+', '"duration_ns":-1', lines[-1])]]
    for number, edit in enumerate(edits):
        binding, capture = stopped_binding(
            shp, f"t10/{number}", lambda: (one(shp, "a"), one(shp, "b")))
        lines = [line for line in binding.db_path.read_text().splitlines(True)
                 if '"type":"span"' in line or '"metadata"' in line]
        binding.db_path.write_text("".join(edit(lines)))
        outcomes.append(raised_type(binding.archive, capture))
    return outcomes


def rewrite_metadata(binding, **changes):
    first, _, rest = binding.db_path.read_text().partition("\n")
    metadata = dict(json.loads(first), **changes)
    binding.db_path.write_text(json.dumps(metadata) + "\n" + rest)


@rule("archive refuses another session's or process's file",
      [["ValueError",
        "Host data process/session does not match this binding"]] * 2,
      theirs=ABSENT)
def _(shp):
    outcomes = []
    for number, change in enumerate(({"session_id": "x"}, {"pid": 1})):
        binding, capture = stopped_binding(shp, f"t11/{number}")
        rewrite_metadata(binding, **change)
        outcomes.append(raised(binding.archive, capture))
    return outcomes


@rule("archive refuses a file that is not complete",
      ["RuntimeError",
       "Stop Host collection successfully before archiving"], theirs=ABSENT)
def _(shp):
    binding, capture = stopped_binding(shp, "t12")
    rewrite_metadata(binding, complete=False)
    return raised(binding.archive, capture)


@rule("archive refuses data from outside the staging directory",
      ["ValueError",
       "Host data must belong to this binding's staging directory"])
def _(shp):
    binding, capture = stopped_binding(shp, "t13")
    moved = folder("t13/moved") / "python_host_1_x.jsonl"
    shutil.move(str(binding.db_path), str(moved))
    binding.db_path = moved
    return raised(binding.archive, capture)


# ---- SGLang ---------------------------------------------------------------------------------------

PROFILE_ID = "profile_id must be a non-empty SGLang capture identifier"
RANK = "rank must be a non-negative integer or None"
DEVICE = "physical_device must be a non-negative integer or None"


@rule("attach_sglang checks what it is given",
      [["ValueError", PROFILE_ID], ["ValueError", PROFILE_ID],
       ["ValueError", RANK], ["ValueError", RANK], ["ValueError", RANK],
       ["ValueError", DEVICE], ["ValueError", DEVICE], "ValueError",
       "TypeError", "TypeError"])
def _(shp):
    def attach(**options):
        return functools.partial(shp.attach_sglang, FOLDER, **options)
    return [raised(attach(profile_id="")), raised(attach(profile_id=5)),
            raised(attach(profile_id="p", rank=-1)),
            raised(attach(profile_id="p", rank=True)),
            raised(attach(profile_id="p", rank="0")),
            raised(attach(profile_id="p", physical_device=-1)),
            raised(attach(profile_id="p", physical_device=1.0)),
            raised_type(attach(profile_id="p", source_version=math.nan)),
            raised_type(attach(profile_id="p", source_version={1, 2})),
            raised_type(attach())]


@rule("attach_sglang keeps a copy of the source version",
      [{"a": [1, 2]}, True, 3, None])
def _(shp):
    version = {"a": (1, 2)}
    capture = shp.attach_sglang(FOLDER, profile_id="p", rank=3,
                                source_version=version)
    version["b"] = 1
    return [capture.source_version, capture.db_path is None, capture.rank,
            capture.physical_device]


def stopped_capture(shp, name, **options):
    capture = shp.attach_sglang(folder(name), profile_id="p1", **options)
    path = capture.start()
    one(shp, "s")
    return capture, path, capture.stop()


@rule("a capture starts once",
      ["RuntimeError", "Create a new capture for each profiling window"])
def _(shp):
    capture, _, _ = stopped_capture(shp, "g1")
    return raised(capture.start)


@rule("a capture takes four clock samples",
      [["start_before", "start_after", "stop_before", "stop_after"],
       ["monotonic_ns", "monotonic_raw_ns", "uncertainty_ns",
        "sample_before_ns", "sample_after_ns"], True])
def _(shp):
    anchors = stopped_capture(shp, "g2")[0].clock_anchors
    samples = list(anchors.values())
    times = [sample["monotonic_ns"] for sample in samples]
    return [list(anchors), list(samples[0]),
            times == sorted(times) and all(
                s["uncertainty_ns"]
                == s["sample_after_ns"] - s["sample_before_ns"]
                and isinstance(s["monotonic_raw_ns"], int) for s in samples)]


@rule("a capture's stop gives the path, and gives it again", [True, True])
def _(shp):
    capture, path, stopped = stopped_capture(shp, "g3")
    return [stopped == path, capture.stop() == path]


NOT_OWNER = ["RuntimeError",
             "This capture does not own the active process collector"]


@rule("a capture stops its own session only", [NOT_OWNER] * 3)
def _(shp):
    capture = shp.attach_sglang(folder("g4"), profile_id="p")
    outcomes = [raised(capture.stop)]
    shp.start(FOLDER)
    outcomes.append(raised(capture.stop))
    shp.stop()
    capture.start()
    shp.stop()
    outcomes.append(raised(capture.stop))
    return outcomes


@rule("a capture is archived after its own stop",
      ["RuntimeError",
       "Call capture.stop() successfully before archive()"])
def _(shp):
    capture = shp.attach_sglang(folder("g5"), profile_id="p")
    capture.start()
    outcome = raised(capture.archive, folder("g5/root"))
    shp.stop()
    return outcome


@rule("a capture is archived under its root, not in the staging",
      [["ValueError", "capture_root must be under the attached output root"],
       ["ValueError", "capture_root cannot be the Host staging directory"]])
def _(shp):
    capture, _, _ = stopped_capture(shp, "g6")
    return [raised(capture.archive, folder("g6else")),
            raised(capture.archive, capture.binding.output_dir)]


@rule("a capture's archive makes its directory and a manifest",
      [True, "rank-2-{id}.closed.json",
       ["schema_version", "type", "complete", "profile_id", "rank",
        "session_id", "db_relative_path", "db_sha256", "hostname", "pid",
        "pid_namespace", "physical_device", "source_version",
        "clock_anchors"],
       [1, "host_rank_archive", True, "p1", 2, True, True, True, True, True, 7,
        {"v": 1}, 4]], theirs=ABSENT)
def _(shp):
    capture, _, _ = stopped_capture(shp, "g7", rank=2, physical_device=7,
                                    source_version={"v": 1})
    root = Path(FOLDER) / "g7" / "made" / "here"
    path = capture.archive(root)
    manifest = json.loads(capture.manifest_path.read_text())
    session_id = capture.binding.session_id
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return [capture.db_path == path
            and capture.manifest_path.parent == path.parent,
            capture.manifest_path.name.replace(session_id, "{id}"),
            list(manifest),
            [manifest["schema_version"], manifest["type"],
             manifest["complete"], manifest["profile_id"], manifest["rank"],
             manifest["session_id"] == session_id,
             root.resolve() / manifest["db_relative_path"] == path,
             manifest["db_sha256"] == digest,
             manifest["pid"] == os.getpid(),
             manifest["pid_namespace"] == os.readlink("/proc/self/ns/pid"),
             manifest["physical_device"], manifest["source_version"],
             len(manifest["clock_anchors"])]]


@rule("a capture without a rank says so", ["unranked-{id}.closed.json", None],
      theirs=ABSENT)
def _(shp):
    capture, _, _ = stopped_capture(shp, "g8")
    capture.archive(Path(FOLDER) / "g8" / "c")
    name = capture.manifest_path.name
    return [name.replace(capture.binding.session_id, "{id}"),
            json.loads(capture.manifest_path.read_text())["rank"]]


@rule("archiving a capture again says the same", [True, True], theirs=ABSENT)
def _(shp):
    capture, _, _ = stopped_capture(shp, "g9")
    root = Path(FOLDER) / "g9" / "c"
    path, manifest = capture.archive(root), capture.manifest_path
    return [capture.archive(root) == path, capture.manifest_path == manifest]


@rule("a manifest replaces nobody's file, and can be had later",
      ["FileExistsError", "somebody's", True, True], theirs=ABSENT)
def _(shp):
    capture, _, _ = stopped_capture(shp, "g10", rank=0)
    root = Path(FOLDER) / "g10" / "c"
    place = folder("g10/c/HOST_TRACE")
    taken = place / f"rank-0-{capture.binding.session_id}.closed.json"
    taken.write_text("somebody's")
    outcomes = [raised_type(capture.archive, root), taken.read_text()]
    left = sorted(p.name for p in place.iterdir())
    outcomes.append(left == sorted([taken.name, capture.db_path.name]))
    taken.unlink()
    capture.archive(root)
    return outcomes + [json.loads(taken.read_text())["complete"]]


# ---- running them -----------------------------------------------------------------------------------

def main(place, shp):
    global FOLDER
    outcomes = {}
    for number, (sentence, (function, _, theirs)) in enumerate(RULES.items()):
        FOLDER = os.path.join(place, str(number))
        os.makedirs(FOLDER)
        if theirs == ABSENT and shp.__version__ == "0.5.0":
            continue
        try:
            outcomes[sentence] = json.loads(json.dumps(function(shp)))
        except BaseException:
            outcomes[sentence] = "failed: " + traceback.format_exc()
        with contextlib.suppress(RuntimeError):
            shp.stop()
    return outcomes


if __name__ == "__main__":
    import service_host_profiling
    json.dump(main(sys.argv[1], service_host_profiling), sys.stdout)

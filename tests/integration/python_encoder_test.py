"""Attributes in the file against Python's own json, value by value."""

import random
import sys

from shp_pythons import pythons
from shp_testing import Case, main, run, traced_environment

PROGRAM = r"""
import collections, enum, json, math, random, struct, sys
import service_host_profiling as shp

rng = random.Random(int(sys.argv[2]))

class Colour(enum.IntEnum):
    RED = 1
class Bits(enum.IntFlag):
    A = 1
    B = 2
class Text(str): pass
class Real(float):
    def __repr__(self): return "never asked"
class Whole(int):
    def __repr__(self): return "never asked"
class Pairs(dict):
    def items(self): return [("from", "items")]
Point = collections.namedtuple("Point", "x y")

def text():
    pool = ["", "plain", "with \"quotes\" and \\ back", "\x00\x01\x1f\x7f\x80",
            "line\nline\r\ttab\b\f", "gr\u00fc\u00df", "\u2028\u2029",
            "\U0001f600", "\ufeff", "a" * 5000, "</script>"]
    if rng.random() < 0.5:
        return rng.choice(pool)
    return "".join(chr(rng.choice([rng.randrange(0x20, 0x7f),
                                   rng.randrange(0, 0x20),
                                   rng.randrange(0x80, 0xd800),
                                   rng.randrange(0xe000, 0x110000)]))
                   for _ in range(rng.randrange(12)))

def real():
    while True:
        kind = rng.randrange(5)
        value = (struct.unpack("<d", rng.getrandbits(64).to_bytes(8, "little"))[0]
                 if kind == 0 else rng.uniform(-1e6, 1e6) if kind == 1
                 else float(rng.randrange(-10**17, 10**17)) if kind == 2
                 else round(rng.uniform(-100, 100), 2) if kind == 3
                 else rng.choice([0.0, -0.0, 1e15, 1e16, 1e17, -1e15, 5e-324,
                                  1.7976931348623157e308, 1e-5, 1e-4, 0.1,
                                  123456789012345680.0, 999999999999999.0]))
        if math.isfinite(value):
            return value

def whole():
    return rng.choice([0, 1, -1, rng.randrange(-1000, 1000), 2**63 - 1, -2**63,
                       2**63, -2**63 - 1, rng.getrandbits(200), 10**40,
                       rng.getrandbits(31), 2**53 + 1])

def scalar():
    return rng.choice([text, real, whole, lambda: None, lambda: True,
                       lambda: False, lambda: Colour.RED,
                       lambda: Bits.A | Bits.B, lambda: Text("t\u00e9xt"),
                       lambda: Real(1.5), lambda: Whole(-3)])()

def key():
    return rng.choice([text, text, text, whole, real, lambda: None,
                       lambda: True, lambda: Text("k"),
                       lambda: Colour.RED])()

def value(depth):
    kind = rng.randrange(10) if depth else 0
    if kind < 6:
        return scalar()
    size = rng.randrange(5)
    if kind == 6:
        return [value(depth - 1) for _ in range(size)]
    if kind == 7:
        return tuple(value(depth - 1) for _ in range(size))
    if kind == 8:
        return rng.choice([Pairs(a=1), Point(1, "y"),
                           collections.OrderedDict([("z", 1), ("a", 2)]),
                           collections.defaultdict(list, q=[1])])
    return {key(): value(depth - 1) for _ in range(size)}

values = [{key(): value(4) for _ in range(rng.randrange(6))}
          for _ in range(int(sys.argv[3]))]
nested = []
for _ in range(98):
    nested = [nested]
values.append({"deep": nested})
values.append({"long": "x" * (1 << 20 - 4)})
values.append({"many": list(range(60000))})
path = shp.start(sys.argv[1])
for number, attrs in enumerate(values):
    shp.span_end(shp.span_start("v%d" % number, attrs))
path = shp.stop()
wrong = 0
with open(path, encoding="utf-8", newline="\n") as stream:
    next(stream)
    rows = [line for line in stream if line.startswith('{"type":"span"')]
assert len(rows) == len(values), (len(rows), len(values))
for attrs, row in zip(values, rows):
    expected = json.dumps(attrs, ensure_ascii=False, allow_nan=False,
                          separators=(",", ":"))
    got = row[row.index(',"args":') + len(',"args":'):-2]
    if got != expected:
        wrong += 1
        if wrong < 4:
            print("expected", expected[:300], "\ngot     ", got[:300])
print(len(values), "values,", wrong, "wrong")
"""


class Encoder(Case):
    def check(self, python, seed, count):
        result = run([python, self.script(PROGRAM), self.out, seed, count],
                     env=traced_environment(self.running))
        self.assert_ok(result)
        self.assertEqual(result.stdout, f"{count + 3} values, 0 wrong\n")

    def test_is_json_dumps(self):
        self.running = self.daemon()
        seed = random.randrange(1 << 30)
        print("seed", seed, file=sys.stderr)
        for version, python in pythons().items():
            with self.subTest(version, seed=seed):
                self.check(python, seed, 3000)


if __name__ == "__main__":
    main()

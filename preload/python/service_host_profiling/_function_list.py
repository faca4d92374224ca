"""Lists of functions to record, as text: files that users write, and presets.

One function a line, `#` begins a comment:

    [?] MODULE:QUALNAME [as NAME] [with KEY=EXPR, …] [counts NAME=EXPR, …]

After `?` it is no fault when there is no such function.
`*` stands for any part of a name between dots, in a module also for several.
NAME is the span's, else QUALNAME. The EXPRs are of the function's arguments,
`with` when it is called, `counts` when it returns: names, attributes, items,
calls of methods without arguments, and len(), int(), float(), str(), bool(),
min(), max(), sum() and abs() of one.
"""

import ast

_FUNCTIONS = {f.__name__: f
              for f in (len, int, float, str, bool, min, max, sum, abs)}
_NODES = (ast.Expression, ast.Name, ast.Load, ast.Attribute, ast.Constant,
          ast.Subscript, ast.Call, ast.UnaryOp, ast.USub)
if hasattr(ast, "Index"):
    _NODES += (ast.Index,)  # 3.8


class ListError(ValueError):
    """What is wrong with a line."""


class Wanted:
    """One line: which functions, and what of them."""

    __slots__ = ("module", "parts", "name", "attrs", "counts", "where",
                 "optional")

    def __init__(self, module, parts, name, attrs, counts, where, optional):
        self.module = module  # may hold *
        self.parts = parts    # of the qualified name, each may hold *
        self.name = name      # None: the qualified name
        self.attrs = attrs    # {key: code}
        self.counts = counts
        self.where = where    # "FILE:LINE"
        self.optional = optional

    def __repr__(self):
        return f"{self.module}:{'.'.join(self.parts)}"


def matches(pattern, text):
    """Whether `pattern`, whose * stands for any characters, is `text`."""
    pieces = pattern.split("*")
    if len(pieces) == 1:
        return pattern == text
    first, *middle, last = pieces
    if (len(text) < len(first) + len(last) or not text.startswith(first)
            or not text.endswith(last)):
        return False
    at, end = len(first), len(text) - len(last)
    for piece in middle:
        at = text.find(piece, at, end)
        if at < 0:
            return False
        at += len(piece)
    return True


def parse(text, origin):
    """([Wanted], [what is wrong, a line each]) of a whole list."""
    wanted, wrong = [], []
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{origin}:{number}"
        line = _without_comment(line).strip()
        if not line:
            continue
        try:
            wanted.append(_parse_line(line, where))
        except ListError as error:
            wrong.append(f"{where}: {error}")
    return wanted, wrong


def _without_comment(line):
    return _cut(line, "#")[0]


def _cut(text, *words):
    """(what is before the first of `words` outside of quotes and brackets,
    that word, what is behind it)."""
    quote, depth = "", 0
    for i, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif depth == 0:
            for word in words:
                if text.startswith(word, i):
                    return text[:i], word, text[i + len(word):]
    return text, "", ""


def _parse_line(line, where):
    target, word, rest = _cut(line, " as ", " with ", " counts ")
    found = {}
    while word:
        part, following, rest = _cut(rest, " as ", " with ", " counts ")
        if word in found:
            raise ListError(f"{word.strip()!r} stands twice")
        if not part.strip():
            raise ListError(f"nothing follows {word.strip()!r}")
        found[word] = part.strip()
        word = following
    target = target.strip()
    optional = target.startswith("?")
    target = target.lstrip("? ")
    module, colon, qualname = target.partition(":")
    if not colon:
        raise ListError(f"{target!r} is not MODULE:FUNCTION")
    parts = qualname.split(".")
    for part in (*module.split("."), *parts):
        if not (part.replace("*", "x") or "-").isidentifier() and (
                part != "<locals>"):
            raise ListError(f"{part!r} in {target!r} is no name")
    name = found.get(" as ")
    return Wanted(module, parts, name.strip("'\"") if name else None,
                  _expressions(found.get(" with "), where),
                  _expressions(found.get(" counts "), where), where, optional)


def _expressions(text, where):
    out = {}
    while text:
        part, _, text = _cut(text, ",")
        key, sign, expression = part.partition("=")
        if not sign or not key.strip():
            raise ListError(f"{part.strip()!r} is not KEY=EXPRESSION")
        out[key.strip().strip("'\"")] = _compile(expression.strip(), where)
    return out


def _compile(text, where):
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError as error:
        raise ListError(f"{text!r}: {error.msg}") from None
    for node in ast.walk(tree):
        problem = _problem(node)
        if problem:
            raise ListError(f"{text!r}: {problem}")
    return compile(tree, f"<{where}>", "eval")


def _problem(node):
    if not isinstance(node, _NODES):
        return f"{type(node).__name__} is not allowed"
    if isinstance(node, ast.Attribute) and node.attr.startswith("__"):
        return f"{node.attr} is not allowed"
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name):
            if node.func.id not in _FUNCTIONS:
                return f"{node.func.id}() is not one of the functions here"
            if len(node.args) != 1 or node.keywords:
                return f"{node.func.id}() takes one argument here"
        elif node.args or node.keywords:
            return "methods are called without arguments here"
    return None


GLOBALS = {"__builtins__": _FUNCTIONS}

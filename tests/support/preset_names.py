"""Which release has which function of our presets, read from wheels.

    preset_names.py WHEEL... > tests/golden/preset_names.json

The wheels are only read (`pip download --no-deps sglang==0.5.6`), and their
classes only as text: nothing of them is imported. A name counts as there when
its module defines the function, or the class with that method, its own or of a
base in the same module.
"""

import ast
import json
import pathlib
import re
import sys
import zipfile

PRESETS = (pathlib.Path(__file__).resolve().parents[2] / "preload" / "python"
           / "service_host_profiling" / "presets")
_LINE = re.compile(r"^(\?\s*)?([\w.]+:[\w.]+)")


def lines_of(preset):
    """[(target, is it optional)] of a preset."""
    text = (PRESETS / f"{preset}.txt").read_text(encoding="utf-8")
    found = [_LINE.match(line) for line in text.splitlines()
             if line.strip() and not line.startswith("#")]
    return [(match[2], bool(match[1])) for match in found]


def _functions(body):
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name
        elif isinstance(node, (ast.If, ast.Try)):
            yield from _functions(node.body)
            yield from _functions(node.orelse)


def names_in(source):
    """All functions of a module: "name" and "Class.name"."""
    tree = ast.parse(source)
    names = set(_functions(tree.body))
    classes = {node.name: node for node in tree.body
               if isinstance(node, ast.ClassDef)}

    def methods(node):
        own = set(_functions(node.body))
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id in classes:
                own |= methods(classes[base.id])
        return own

    for name, node in classes.items():
        names |= {f"{name}.{method}" for method in methods(node)}
    return names


def has(archive, target):
    module, _, name = target.partition(":")
    path = module.replace(".", "/")
    for file in (f"{path}.py", f"{path}/__init__.py"):
        try:
            source = archive.read(file)
        except KeyError:
            continue
        return name in names_in(source)
    return False


def row(wheel):
    """("sglang 0.5.6", {target: True or False})."""
    project, version = pathlib.Path(wheel).name.split("-")[:2]
    with zipfile.ZipFile(wheel) as archive:
        return f"{project} {version}", {
            target: has(archive, target) for target, _ in lines_of(project)}


if __name__ == "__main__":
    json.dump(dict(row(wheel) for wheel in sys.argv[1:]), sys.stdout, indent=1)
    print()

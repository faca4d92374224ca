"""From a qualified name in a module to the functions that it means."""

import functools
import types

from ._function_list import matches


class NotTraceable(Exception):
    """Why a function cannot be recorded."""


class Target:
    """A name's place and what stands there."""

    __slots__ = ("owner", "key", "raw", "qualname")

    def __init__(self, owner, key, raw, qualname):
        self.owner = owner  # a module, a class, or a code object
        self.key = key
        self.raw = raw      # as in the owner's __dict__
        self.qualname = qualname

    def code(self):
        """The function's own code, below decorators that tell what they wrap;
        None when it is hidden or not Python's."""
        if isinstance(self.raw, types.CodeType):
            return self.raw
        function = _innermost(self.raw, self.key)
        code = getattr(function, "__code__", None)
        if not isinstance(code, types.CodeType):
            return None
        # One code for all that a decorator made is no function's own.
        own = self.key == code.co_name or code.co_name == "<lambda>"
        return code if own else None


def _descriptor_part(raw):
    """The attribute of a descriptor that holds its function."""
    if isinstance(raw, (staticmethod, classmethod)):
        return "__func__"
    if isinstance(raw, property):
        return "fget"
    if isinstance(raw, (functools.cached_property, functools.partial,
                        functools.partialmethod)):
        return "func"
    return None


def _innermost(raw, key):
    seen = set()
    while id(raw) not in seen:
        seen.add(id(raw))
        part = _descriptor_part(raw)
        if part is None and isinstance(raw, types.MethodType):
            part = "__func__"
        if part is None and hasattr(raw, "__wrapped__"):
            part = "__wrapped__"
        if part is None:
            hidden = _in_closure(raw, key)
            if hidden is None:
                return raw
            raw = hidden
        else:
            raw = getattr(raw, part)
    return raw


def _in_closure(function, key):
    """What a decorator without functools.wraps has wrapped."""
    code = getattr(function, "__code__", None)
    if code is None or code.co_name == key:
        return None
    for cell in getattr(function, "__closure__", None) or ():
        try:
            held = cell.cell_contents
        except ValueError:
            continue
        if callable(held) and getattr(held, "__name__", None) == key:
            return held
    return None


def find(module, parts):
    """Targets of a qualified name, whose parts may hold *."""
    return list(_walk(module, parts, "", module.__name__))


def _walk(owner, parts, prefix, module_name):
    part, rest = parts[0], parts[1:]
    if part == "<locals>" and rest:
        yield from _nested(owner, rest, f"{prefix}<locals>.")
        return
    for key, raw, holder in _members(owner, part, bool(rest), module_name):
        qualname = prefix + key
        if not rest:
            yield Target(holder, key, raw, qualname)
        elif rest[0] == "<locals>":
            code = Target(holder, key, raw, qualname).code()
            if code is not None:
                yield from _walk(code, rest, f"{qualname}.", module_name)
        elif isinstance(raw, type):
            yield from _walk(raw, rest, f"{qualname}.", module_name)


def _nested(code, parts, prefix):
    for constant in code.co_consts:
        if not isinstance(constant, types.CodeType) or not matches(
                parts[0], constant.co_name):
            continue
        if len(parts) == 1:
            yield Target(code, constant.co_name, constant,
                         prefix + constant.co_name)
        elif parts[1] == "<locals>":
            yield from _nested(constant, parts[2:],
                               f"{prefix}{constant.co_name}.<locals>.")


def _members(owner, part, want_classes, module_name):
    """(key, what stands there, whose it is)."""
    if isinstance(owner, types.CodeType):
        return
    if "*" not in part:
        for holder in getattr(owner, "__mro__", (owner,)):
            if part in vars(holder):
                yield part, vars(holder)[part], holder
                return
        return
    for key, raw in list(vars(owner).items()):
        if not matches(part, key) or (
                key.startswith("__") and not part.startswith("__")):
            continue
        if isinstance(raw, type):
            own = want_classes and raw.__module__ == module_name
        else:
            function = _innermost(raw, key)
            own = not want_classes and isinstance(
                function, types.FunctionType) and (
                    isinstance(owner, type)
                    or function.__module__ == module_name)
        if own:
            yield key, raw, owner


def replace(target, wrap):
    """Puts wrap(function) where the target's function stands, as what it was:
    a static method, a property, …"""
    if isinstance(target.raw, types.CodeType):
        raise NotTraceable("a function inside another needs CPython 3.12")
    new = _rebuilt(target.raw, wrap)
    try:
        setattr(target.owner, target.key, new)
    except (AttributeError, TypeError) as error:
        raise NotTraceable(f"cannot be replaced: {error}") from None
    if isinstance(new, functools.cached_property):
        new.__set_name__(target.owner, target.key)
    target.raw = new


def _rebuilt(raw, wrap):
    if isinstance(raw, (staticmethod, classmethod)):
        return type(raw)(_rebuilt(raw.__func__, wrap))
    if isinstance(raw, property):
        return type(raw)(_rebuilt(raw.fget, wrap), raw.fset, raw.fdel,
                         raw.__doc__)
    if isinstance(raw, functools.cached_property):
        return functools.cached_property(_rebuilt(raw.func, wrap))
    if isinstance(raw, type) or not callable(raw):
        raise NotTraceable(f"is no function but a {type(raw).__name__}")
    if not isinstance(raw, types.FunctionType) and not hasattr(
            raw, "__wrapped__"):
        raise NotTraceable(f"is no Python function but a {type(raw).__name__}")
    return wrap(raw)

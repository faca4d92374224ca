from os import PathLike
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any, Callable, Mapping, Optional, Type, TypeVar, Union

_Function = TypeVar("_Function", bound=Callable[..., Any])

# A dict that JSON can say, a callable that returns one, or a dict some of whose
# values are callables that return theirs. Callables are asked in stop().
Attrs = Union[Mapping[str, Any], Callable[[], Optional[Mapping[str, Any]]],
              None]

class Span:
    attrs: Any
    @property
    def name(self) -> str: ...
    def __enter__(self) -> Span: ...
    def __exit__(self, kind: Optional[Type[BaseException]],
                 value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None: ...
    def __call__(self, function: _Function) -> _Function: ...

class ActiveSession:
    path: Path
    pid: int

_active: Optional[ActiveSession]
_lifecycle: RLock

def is_enabled() -> bool: ...
def start(output_dir: Union[str, PathLike[str]], *,
          session_id: Optional[str] = None) -> Optional[Path]: ...
def stop() -> Optional[Path]: ...
def span_start(name: str, attrs: Attrs = None) -> int: ...
def span_end(span_id: int) -> None: ...
def span(name: str, attrs: Attrs = None) -> Span: ...
def profile(name: str,
            attrs: Attrs = None) -> Callable[[_Function], _Function]: ...

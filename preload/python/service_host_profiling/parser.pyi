from os import PathLike
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Union

_Path = Union[str, PathLike[str]]

SCHEMA_VERSION: int

class HostFile:
    path: Path
    metadata: Dict[str, Any]
    def __init__(self, path: _Path) -> None: ...
    def spans(self) -> Iterator[Dict[str, Any]]: ...

class HistoricalFile(HostFile): ...

def open_host_file(path: _Path) -> HostFile: ...
def export_chrome_trace(paths: Union[_Path, Iterable[_Path]],
                        output: _Path) -> Path: ...
def merge_torch_directory(
    hosts: Union[_Path, Iterable[_Path]], torch_dir: _Path, *,
    pid_map: Optional[Mapping[int, int]] = None,
    clock_offset_ns: Any = None,
    clock_anchors_ns: Any = None) -> List[Path]: ...

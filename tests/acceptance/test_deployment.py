"""What `deploy/` holds: each part is run, or read by the program it is for, as far as there is one.

The container's own steps are run by scripts/check_wheel.py, which `make test` calls.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import time
from pathlib import Path

import psycopg
import pytest
import yaml

from cofire import Memory
from cofire.store.postgres_schema import upgrade
from pgbouncer_server import program
from postgres_fixtures import require_pgbouncer, require_postgres
from postgres_server import SUPERUSER, private_server, programs
from watched import Watched

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
UNITS = sorted(DEPLOY.glob("*.service"))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(port: int, watched: Watched) -> None:
    deadline = time.monotonic() + 10.0
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    pytest.fail((watched.folder / "log").read_text())


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_systemd_understands_the_units(unit: Path, tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("no systemd-analyze: it comes with systemd")
    text = unit.read_text()
    program = re.search(r"^ExecStart=(\S+)", text, re.MULTILINE)
    assert program is not None
    shell = shutil.which("sh")
    assert shell is not None
    copy = tmp_path / unit.name
    copy.write_text(text.replace(program.group(1), shell))  # nothing is installed in /opt here
    done = subprocess.run(
        [analyze, "verify", "--man=no", str(copy)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_compose_file_names_what_there_is() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    assert set(compose["services"]) == {"database", "schema", "pgbouncer", "cofire", "worker"}
    asked_for = set(re.findall(r"\$\{(\w+)", (DEPLOY / "compose.yaml").read_text()))
    assert asked_for == set(re.findall(r"^(\w+)=", (DEPLOY / "example.env").read_text(), re.M))
    for service in compose["services"].values():
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            assert source in compose["volumes"] or (DEPLOY / source).exists(), source
        for needed in service.get("depends_on", ()):
            assert needed in compose["services"]
        if "build" in service:
            assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).exists()
            assert service["environment"]["PGPASSWORD"].startswith("${COFIRE_")
    assert compose["services"]["cofire"]["ports"] == ["127.0.0.1:8321:8321"]


def test_its_postgres_and_pgbouncer_serve_a_memory(tmp_path: Path) -> None:
    """`roles.sh`, the schema, `pgbouncer.sh` with `pgbouncer.ini`, and a memory through it."""
    require_postgres()
    require_pgbouncer()
    folder = programs()
    pooler = program()
    assert folder is not None
    assert pooler is not None
    secret = """it's "so" secret"""  # noqa: S105
    with private_server(tcp=True) as server:
        paths = [str(folder), str(Path(pooler).parent), os.environ.get("PATH", os.defpath)]
        env = {
            "PATH": os.pathsep.join(paths),
            "PGHOST": str(server.folder),
            "PGPORT": str(server.address.port),
            "POSTGRES_USER": SUPERUSER,
            "COFIRE_OWNER_PASSWORD": "owner",
            "COFIRE_APP_PASSWORD": secret,
        }
        with psycopg.connect(server.address.url(SUPERUSER), autocommit=True) as connection:
            for role in ("cofire_app", "cofire_owner"):  # the tests' own are called so too
                connection.execute(f"ALTER ROLE {role} RENAME TO tests_{role}".encode())
        subprocess.run(["sh", str(DEPLOY / "roles.sh")], env=env, check=True, cwd=tmp_path)
        owner = server.address.url("cofire_owner", "cofire")
        upgrade(owner, app_roles=["cofire_app"], partitions=2)
        watched = Watched(None, ending="TERM")
        try:
            port = free_port()
            users = watched.folder / "users"
            ini = watched.folder / "pgbouncer.ini"
            ini.write_text(
                (DEPLOY / "pgbouncer.ini")
                .read_text()
                .replace("host=database port=5432", f"host=127.0.0.1 port={server.address.port}")
                .replace("listen_addr = *", "listen_addr = 127.0.0.1")
                .replace("listen_port = 6432", f"listen_port = {port}")
                .replace("/tmp/pgbouncer.users", str(users))  # noqa: S108
            )
            script = watched.folder / "pgbouncer.sh"
            script.write_bytes((DEPLOY / "pgbouncer.sh").read_bytes())
            wrapped = (
                'exec env PATH="$1" COFIRE_APP_PASSWORD="$2" PGBOUNCER_USERS="$3" sh "$4" "$5"'
            )
            watched.begin(
                ["sh", "-c", wrapped, "sh", env["PATH"], secret, str(users), str(script), str(ini)],
                log=watched.folder / "log",
            )
            wait_for(port, watched)
            with psycopg.connect(
                host="127.0.0.1", port=port, user="cofire_app", password=secret,
                dbname="cofire", prepare_threshold=None,
            ) as connection:  # fmt: skip
                assert connection.execute("SELECT 1").fetchone() == (1,)
            with pytest.raises(psycopg.OperationalError, match=r"password|SASL|auth"):
                psycopg.connect(
                    host="127.0.0.1",
                    port=port,
                    user="cofire_app",
                    password=secret[:-1],
                    dbname="cofire",
                )
            url = f"postgresql://cofire_app@127.0.0.1:{port}/cofire?pooler=transaction"
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("PGPASSWORD", secret)
                with Memory.open(url, embedder="hashing:64") as memory:
                    memory.remember("The pier is closed.")
                    assert [hit.content for hit in memory.recall("pier")] == ["The pier is closed."]
        finally:
            watched.close()

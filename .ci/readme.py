"""Run what documents show.

    readme.py MINFER WORK DOCUMENT...

Blocks marked ```sh run in one empty directory per document, line by line as a shell would, with MINFER's directory first
in PATH and stopping at the first command that fails. Lines that begin with `go ` run in the repository. A block that
fetches with pip is left to its own stage. Blocks marked ```go that are programs are built against the repository and run.
Other blocks (```console, ```text) show output and are not run.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
MAX_SECONDS = 300


def run(argv, cwd, env):
    return subprocess.run(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=MAX_SECONDS)


def shell(block, directory, repository, env):
    """The block as a script: Go commands belong to a clone."""
    script = re.sub(r"^(go .*)$", r'(cd "$REPOSITORY" && \1)', block, flags=re.M)
    return run(["bash", "-euo", "pipefail", "-c", script], directory, {**env, "REPOSITORY": str(repository)})


def program(block, directory, repository, env):
    """A Go program in a module of its own that uses the repository's."""
    directory.mkdir()
    (directory / "main.go").write_text(block, encoding="utf-8")
    shutil.copy(repository / "go.sum", directory / "go.sum")
    go_mod = (repository / "go.mod").read_text(encoding="utf-8")
    go_mod = go_mod.replace("module github.com/minfer-go/minfer\n", "module example\n")
    go_mod += f"\nrequire github.com/minfer-go/minfer v0.0.0\n\nreplace github.com/minfer-go/minfer => {repository}\n"
    (directory / "go.mod").write_text(go_mod, encoding="utf-8")
    return run(["go", "run", "-mod=mod", "."], directory, env)


def main():
    minfer, work, *documents = sys.argv[1:]
    repository, work = pathlib.Path.cwd(), pathlib.Path(work) / "readme"
    work.mkdir()
    env = {**os.environ, "PATH": f"{pathlib.Path(minfer).parent}{os.pathsep}{os.environ['PATH']}", "XDG_CACHE_HOME": str(work / "cache")}
    env |= {"GOCACHE": subprocess.check_output(["go", "env", "GOCACHE"], text=True).strip()}
    counts, failed = {}, False
    for document in documents:
        directory = work / pathlib.Path(document).stem
        directory.mkdir()
        for i, (kind, block) in enumerate(BLOCK.findall(pathlib.Path(document).read_text(encoding="utf-8"))):
            if kind == "sh" and "pip download" not in block:
                done = shell(block, directory, repository, env)
            elif kind == "go" and block.startswith("package main"):
                done = program(block, work / f"go{i}", repository, env)
            else:
                continue
            counts[kind] = counts.get(kind, 0) + 1
            if done.returncode != 0:
                failed = True
                print(f"{document}: this block ends with code {done.returncode}:\n{block}--- its output:\n{done.stdout.decode(errors='replace')}")
    print("blocks run:", counts)
    if failed or not counts.get("sh") or not counts.get("go"):
        sys.exit(1)


main()

#!/usr/bin/env python3
"""Tries the mutants of mutants.toml: each is a defect put into a copy of the project, which a test must notice.

usage: tools/mutants/run.py [--check] [WORD...]

A WORD chooses the mutants with it in their name or file. --check only looks whether each can still be put in.
The copy and its build are in target/mutants, or below CARGO_TARGET_DIR. A mutant is caught if the project
builds and the test fails; the exit code is 1 if one is not.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
# Not the build of the project itself: cargo takes the same package in another folder for the same.
COPY, BUILD = TARGET / "mutants/copy", TARGET / "mutants/build"
# A build and a test take less, also on a busy machine; a mutant that hangs is caught.
BUILD_LIMIT_S = 1800
TEST_LIMIT_S = 300


def chosen(words):
    with open(ROOT / "tools/mutants/mutants.toml", "rb") as file:
        mutants = tomllib.load(file)["mutant"]
    return [m for m in mutants if not words or any(w in m["name"] or w in m["file"] for w in words)]


def changed(mutant):
    """The file with the defect, or why there can be none."""
    text = (ROOT / mutant["file"]).read_text()
    count = text.count(mutant["find"])
    if count != 1:
        raise SystemExit(f"{mutant['name']}: {mutant['file']} has the text {count} times, not once")
    return text.replace(mutant["find"], mutant["put"])


def copy():
    """Files of git, those that are not committed yet included; unchanged ones keep their build."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, check=True,
    )
    wanted = {name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()}
    for path in COPY.rglob("*"):
        if path.is_file() and str(path.relative_to(COPY)) not in wanted:
            path.unlink()
    for name in wanted:
        source, target = ROOT / name, COPY / name
        if not target.exists() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            shutil.copymode(source, target)


def cargo(words, limit):
    """Whether a cargo command succeeds, and the end of its output; None if it took too long."""
    environment = {**os.environ, "CARGO_TARGET_DIR": str(BUILD), "RUST_BACKTRACE": "0"}
    try:
        ran = subprocess.run(
            ["cargo", *words], cwd=COPY, env=environment, timeout=limit,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        )
    except subprocess.TimeoutExpired:
        return None, ""
    return ran.returncode == 0, ran.stdout[-2000:]


def test(words):
    """Whether the tests of these words succeed; the project must build."""
    package, _, names = words.partition(" -- ")
    built, output = cargo(["test", *package.split(), "--no-run"], BUILD_LIMIT_S)
    if not built:
        raise SystemExit(f"cargo test {words}: does not build:\n{output}")
    filters = ["--", *names.split()] if names else []
    return cargo(["test", *package.split(), *filters], TEST_LIMIT_S)


def main():
    words = sys.argv[1:]
    only_checks = "--check" in words
    mutants = chosen([word for word in words if word != "--check"])
    texts = [changed(mutant) for mutant in mutants]
    if only_checks:
        return print(f"{len(mutants)} mutants can be put in")
    copy()
    # A test that fails anyway catches nothing.
    for words in sorted({mutant["test"] for mutant in mutants}):
        succeeds, output = test(words)
        if not succeeds:
            raise SystemExit(f"cargo test {words} fails without any mutant:\n{output}")
    survivors = []
    for mutant, text in zip(mutants, texts):
        path = COPY / mutant["file"]
        path.write_text(text)
        begun = time.monotonic()
        succeeds, _ = test(mutant["test"])
        shutil.copyfile(ROOT / mutant["file"], path)
        if succeeds:
            survivors.append(mutant["name"])
        verdict = "NOT CAUGHT" if succeeds else "caught"
        print(f"{verdict:10} {time.monotonic() - begun:4.0f} s  {mutant['name']}", flush=True)
    print(f"{len(mutants) - len(survivors)} of {len(mutants)} mutants are caught")
    sys.exit(1 if survivors else 0)


if __name__ == "__main__":
    main()

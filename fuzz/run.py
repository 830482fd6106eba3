"""Coverage-guided fuzzing of everything that reads what comes from outside, with atheris.

    .venv/bin/python -m pip install 'atheris>=3'
    .venv/bin/python fuzz/run.py [READER …] [--seconds 150]

One process a reader, one after the other. What libFuzzer learned stays in var/fuzz/READER and is where the next run
begins; an input that breaks a property is left there too, and `fuzz/run.py READER --replay FILE` shows how. The exit
status is 1 where one was found. The properties are those of `fuzz/properties.py`.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

CORPUS = HERE.parent / "var" / "fuzz"
SECONDS_AN_INPUT = 5
MEGABYTES = 1024
LONGEST_INPUT = 16_384


def main() -> int:
    from fuzz.properties import PROPERTIES

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "readers", nargs="*", metavar="READER", help=f"of {', '.join(PROPERTIES)}; all unless named"
    )
    parser.add_argument("--seconds", type=int, default=150, help="for each reader")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="put this one input to the reader")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = set(options.readers) - set(PROPERTIES)
    if unknown:
        parser.error(f"no such reader: {', '.join(sorted(unknown))}")
    if options.replay:
        PROPERTIES[options.readers[0]](options.replay.read_bytes())
        return 0
    if options.here:
        fuzz(options.readers[0], options.seconds)
    return max(watch(reader, options.seconds) for reader in options.readers or PROPERTIES)


def watch(reader: str, seconds: int) -> int:
    """Fuzz one reader in a process of its own and print what came of it."""
    command = [sys.executable, __file__, reader, "--seconds", str(seconds), "--here"]
    log = CORPUS / reader / "log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        status = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False).returncode
    said = log.read_text(errors="replace")
    runs = re.findall(r"stat::number_of_executed_units:\s+(\d+)", said)
    coverage = re.findall(r"cov: (\d+) ft: (\d+) corp: (\d+)", said)
    edges, features, inputs = coverage[-1] if coverage else ("?", "?", "?")
    print(
        f"{reader}: {int(runs[-1]) if runs else 0:,} executions, {edges} edges, {features} features, "
        f"{inputs} inputs kept: " + ("nothing broke" if status == 0 else f"BROKEN, see {log}"),
        flush=True,
    )
    return int(status != 0)


def fuzz(reader: str, seconds: int) -> None:
    """Hand this process over to libFuzzer; it does not come back."""
    import atheris

    for name in [name for name in sys.modules if name.startswith(("pooling", "fuzz.", "evalsets"))]:
        del sys.modules[name]  # imported again below, with counters in it
    with atheris.instrument_imports(include=["pooling", "evalsets"]):
        from fuzz.properties import PROPERTIES
    from fuzz.seeds import seeds, tokens

    folder = CORPUS / reader
    (folder / "seeds").mkdir(exist_ok=True)
    (folder / "learned").mkdir(exist_ok=True)
    for number, seed in enumerate(seeds(reader)):
        (folder / "seeds" / str(number)).write_bytes(seed)
    dictionary = folder / "tokens"
    dictionary.write_text(
        "".join('"' + "".join(f"\\x{byte:02X}" for byte in token) + '"\n' for token in tokens())
    )
    arguments = [
        sys.argv[0],
        f"-max_total_time={seconds}",
        f"-timeout={SECONDS_AN_INPUT}",
        f"-rss_limit_mb={MEGABYTES}",
        f"-max_len={LONGEST_INPUT}",
        f"-dict={dictionary}",
        f"-artifact_prefix={folder}/broken-",
        "-print_final_stats=1",
        str(folder / "learned"),
        str(folder / "seeds"),
    ]
    atheris.Setup(arguments, PROPERTIES[reader])
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())

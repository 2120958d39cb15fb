#!/usr/bin/env python3
"""Checks the checks: with a stand-in for the program that does one thing wrong, the right check has to fail.

    python3 tests/conformance/check.py

Needs no build of the program. Ends with a line `N passed, N failed`.
"""

import concurrent.futures
import pathlib
import shlex
import sys
import tempfile

from install import HERE, install
from run import FAILED, OURS, PASSED, Run, client_command, surroundings

NEW = "2026-07-28"
SOUND = (
    ("auth/metadata-var2", "2025-11-25"),
    ("auth/metadata-var3", NEW),
    ("auth/basic-cimd", NEW),
    ("auth/pre-registration", NEW),
    ("auth/scope-step-up", NEW),
    ("auth/scope-retry-limit", "2025-11-25"),
    ("auth/authorization-server-migration", NEW),
    ("auth/iss-normalized", NEW),
)
# The fault, where it shows, and in which check.
FAULTY = (
    ("dies", "auth/scope-step-up", f"{OURS}served"),
    ("idle", "auth/metadata-default", f"{OURS}served"),
    ("iss", "auth/iss-wrong-issuer", "sep-2468-client-compare-iss-supported"),
    ("issuer", "auth/metadata-issuer-mismatch", "sep-2468-client-validate-metadata-issuer"),
    ("leak", "auth/metadata-default", f"{OURS}served"),
    ("pkce", "auth/metadata-default", "pkce-verifier-matches-challenge"),
    ("resource", "auth/resource-mismatch", "resource-mismatch-rejected"),
    ("reuse", "auth/authorization-server-migration", "sep-2352-no-reuse-on-as-change"),
    ("scope", "auth/scope-from-www-authenticate", "scope-from-www-authenticate"),
    ("silent", "auth/metadata-default", f"{OURS}served"),
    ("slash", "auth/metadata-var2", "resource-parameter-matches-prm"),
)


def main() -> int:
    suite = install()
    standin = [sys.executable, str(HERE / "standin.py")]
    cases = [([], scenario, revision, None) for scenario, revision in SOUND]
    cases += [(["--fault", fault], scenario, NEW, check) for fault, scenario, check in FAULTY]
    failed = 0
    runs = [Run(scenario, revision) for _, scenario, revision, _ in cases]
    with tempfile.TemporaryDirectory(prefix="conformance-") as scratch:
        folder = pathlib.Path(scratch)

        def perform(number: int) -> Run:
            environment = surroundings(shlex.join([*standin, *cases[number][0]]))
            runs[number].perform(suite, client_command(), environment, folder / str(number))
            return runs[number]

        pool = concurrent.futures.ThreadPoolExecutor(4)
        started = [pool.submit(perform, number) for number in range(len(cases))]
        for (flags, scenario, revision, check), end in zip(cases, started):
            run = end.result()
            wrong = [name for name, found in run.checks.items() if found["status"] in FAILED]
            good = check in wrong if check else not wrong and run.count(PASSED)
            failed += not good
            verdict = "as it should be" if good else f"{check} did not fail" if check else "should have passed"
            which = " ".join(flags) or "sound"
            print(f"{which}, {scenario} at {revision}: {verdict} (failed: {', '.join(wrong) or 'nothing'})")
            if not good:
                print(run.output)
    print(f"\n{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

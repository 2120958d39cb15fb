"""Which of the suite's client scenarios are ours, and how each has to end."""

import re

AREA = "auth/"
REVISIONS = ("2025-06-18", "2025-11-25", "2026-07-28")  # what a harness may speak, as far as the suite has scenarios

# Here the person has to be told no; everywhere else the tool call has to be answered.
REFUSED = {
    "auth/iss-normalized",
    "auth/iss-supported-missing",
    "auth/iss-unexpected",
    "auth/iss-wrong-issuer",
    "auth/metadata-issuer-mismatch",
    "auth/resource-mismatch",
    "auth/scope-retry-limit",
}

_OLD = "revision 2025-03-26 alone: an endpoint without protected resource metadata, which we refuse by design"
_MACHINE = "extension: a program that signs in as itself (client_credentials); we sign in a person"
_DPOP = "extension: sender-constrained tokens (RFC 9449); we send bearer tokens"
OUT = {
    "auth/2025-03-26-oauth-endpoint-fallback": _OLD,
    "auth/2025-03-26-oauth-metadata-backcompat": _OLD,
    "auth/client-credentials-basic": _MACHINE,
    "auth/client-credentials-jwt": _MACHINE,
    "auth/dpop": _DPOP,
    "auth/dpop-nonce": _DPOP,
    "auth/enterprise-managed-authorization": "extension: a company's identity provider grants access (token exchange)",
    "auth/wif-jwt-bearer": "extension: a workload's own identity (JWT bearer grant); we sign in a person",
}


def chosen(listing: str) -> tuple[list[tuple[str, str]], list[str]]:
    """From what the suite lists: the runs (scenario, revision), and the scenarios that nobody here has heard of."""
    runs, unknown = [], []
    for name, applies in re.findall(rf"^\s*- ({AREA}\S+) \[(.+)\]$", listing, re.MULTILINE):
        revisions = [revision for revision in applies.split(",") if revision in REVISIONS]
        if name in OUT:
            continue
        if revisions:
            runs += [(name, revision) for revision in revisions]
        else:
            unknown.append(name)
    return runs, unknown

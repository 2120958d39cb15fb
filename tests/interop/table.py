"""Turns verdicts into a table: one per endpoint, a row per feature, a column per client."""


# A verdict is a reason, or one of these.
PASSED = {None: "ok", "refused": "ok, refused"}  # the second: the endpoint refuses, with and without the program
GOOD = {**PASSED, "–": "–"}  # the feature does not apply


def markdown(verdicts: dict, servers: dict, clients: dict) -> str:
    """`verdicts` maps (server, client, feature) to a verdict."""
    out = []
    for server, about in servers.items():
        features = []
        for at, _client, feature in verdicts:
            if at == server and feature not in features:
                features.append(feature)
        used = [client for client in clients if any(key[:2] == (server, client) for key in verdicts)]
        if not used:
            continue
        out += [f"### {about['title']}", "", f"| | {' | '.join(clients[c]['title'] for c in used)} |"]
        out += ["|---|" + ":-:|" * len(used)]
        notes = []
        for feature in features:
            cells = []
            for client in used:
                verdict = verdicts.get((server, client, feature), "–")
                if verdict in GOOD:
                    cells.append(GOOD[verdict])
                else:
                    cells.append("**no**")
                    notes.append(f"- {clients[client]['title']}, {feature}: {verdict}")
            out.append(f"| {feature} | {' | '.join(cells)} |")
        out += ["", *notes, *([""] if notes else [])]
    return "\n".join(out)

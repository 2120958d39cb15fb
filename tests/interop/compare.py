"""Compares what a client saw through the proxy with what the same client saw straight from the endpoint.

Equal means deeply equal, but for the differences that translation between the eras brings by design; each of those
has its place here and nowhere else.
"""

import json
import re

SERVER_INFO = "io.modelcontextprotocol/serverInfo"
RUN_KEY = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"  # each run has its own
NOT_FOUND = {-32002, -32602}  # the code of 2025 and the code of 2026 for a resource that is not there


def compare(step: dict, direct: dict, through: dict, eras: tuple[str, str], plan: dict) -> str | None:
    """Nothing when the two agree, else the first difference in words. `eras` are the client's and the endpoint's."""
    if through is None:
        return "was not reached"
    late = [event for event in through.get("late", []) if "log" not in event or "log" in step]
    if late:
        return f"arrived after the result: {short(late)}"
    special = SPECIAL.get(step["name"]) if step["do"] != "hello" else hello
    if special:
        verdict = special(direct, through, eras, plan)
        if verdict is not False:
            return verdict
    scrubbed = [scrub(plain(entry), [RUN_KEY, *plan.get("scrub", [])]) for entry in (direct, through)]
    if "log" not in step:
        # What an endpoint logs beside the calls comes when it comes; here it belongs to no step.
        for entry in scrubbed:
            entry["events"] = [event for event in entry["events"] if "log" not in event]
    if step["do"] == "updates":
        for entry in scrubbed:
            entry["events"] = sorted({event["updated"] for event in entry["events"] if "updated" in event})
    if step["name"] == "read unknown":
        for entry in scrubbed:
            if entry.get("error", {}).get("code") in NOT_FOUND:
                entry["error"]["code"] = "not found"
    return difference(*scrubbed)


def plain(entry: dict) -> dict:
    """One step's outcome without what names the era or the server that answered."""
    kept = {key: entry[key] for key in ("result", "error", "events") if entry.get(key) is not None}
    if isinstance(kept.get("result"), dict):
        result = {k: v for k, v in kept["result"].items() if k not in ("resultType", "ttlMs", "cacheScope")}
        if isinstance(result.get("_meta"), dict):
            meta = {k: v for k, v in result.pop("_meta").items() if k != SERVER_INFO}
            if meta:
                result["_meta"] = meta
        kept["result"] = result
    return kept


def scrub(entry: dict, patterns: list[str]) -> dict:
    text = json.dumps(entry, ensure_ascii=False)
    for pattern in patterns:
        text = re.sub(pattern, "…", text)
    return json.loads(text)


def difference(direct, through, where: str = "") -> str | None:
    if isinstance(direct, dict) and isinstance(through, dict):
        for key in [*direct, *(key for key in through if key not in direct)]:
            if key not in through:
                return f"{where}.{key} is missing, was {short(direct[key])}"
            if key not in direct:
                return f"{where}.{key} was added: {short(through[key])}"
            if found := difference(direct[key], through[key], f"{where}.{key}"):
                return found
        return None
    if isinstance(direct, list) and isinstance(through, list):
        for index, (one, other) in enumerate(zip(direct, through)):
            if found := difference(one, other, f"{where}[{index}]"):
                return found
        if len(direct) != len(through):
            extra = (direct if len(direct) > len(through) else through)[min(len(direct), len(through)) :]
            return f"{where} has {len(through)} entries instead of {len(direct)}: {short(extra)}"
        return None
    if type(direct) is bool or type(through) is bool:
        return None if direct is through else f"{where} is {short(through)}, was {short(direct)}"
    return None if direct == through else f"{where} is {short(through)}, was {short(direct)}"


def short(value) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 160 else text[:157] + "…"


# ---- differences by design -------------------------------------------------------------------------------------------


def hello(direct, through, eras, _plan):
    """Capabilities: the same families. What is inside differs: a pinned list does not change, tasks are not relayed."""
    one, other = direct["result"], through["result"]
    if one["instructions"] != other["instructions"]:
        return f"instructions are {short(other['instructions'])}, were {short(one['instructions'])}"
    families = {"tools", "resources", "prompts", "completions", "logging"}
    wanted, got = families & one["capabilities"].keys(), families & other["capabilities"].keys()
    return None if wanted == got else f"capabilities are {sorted(got)}, were {sorted(wanted)}"


def tools(direct, through, eras, plan):
    """Tools that need sampling or roots are not there unless the user allows it. A 2025 client of a 2026 endpoint gets
    the 2026-only tools too, without an output schema that it cannot hold. A 2026 client may drop `execution` of 2025.
    """
    if "result" not in through or "result" not in direct:
        return False
    refused = set(plan.get("refused", []))
    listed, got = direct["result"]["tools"], through["result"]["tools"]
    if leaked := [tool["name"] for tool in got if tool["name"] in refused]:
        return f"there are tools that need what nobody allowed: {leaked}"
    if eras == ("2025", "2026"):
        known = {tool["name"] for tool in listed}
        for tool in [tool for tool in got if tool["name"] not in known]:
            if tool.get("outputSchema", {}).get("type", "object") != "object":
                return f"{tool['name']} has an output schema that is not an object: {short(tool['outputSchema'])}"
        got = [tool for tool in got if tool["name"] in known]
    listed = [tool for tool in listed if tool["name"] not in refused]
    if eras == ("2026", "2025"):
        listed, got = [[{k: v for k, v in tool.items() if k != "execution"} for tool in some] for some in (listed, got)]
    direct["result"]["tools"], through["result"]["tools"] = listed, got
    return False


def structured_array(direct, through, eras, _plan):
    """An array as structured content: kept for 2026, dropped for 2025; unknown to a 2025 endpoint, refused by name."""
    if eras[1] == "2025":
        code = through.get("error", {}).get("code")
        return None if code == -32602 else f"an unknown tool gave {short(through)}"
    if eras[0] == "2026":
        return False
    result = plain(through).get("result", {})
    if "structuredContent" in result:
        return f"structured content reached a 2025 client: {short(result['structuredContent'])}"
    return None if result.get("content") else f"no content: {short(through)}"


def prompt_unknown(direct, through, eras, _plan):
    """A prompt outside the list read at start is refused by the program itself, in its own words."""
    codes = [entry.get("error", {}).get("code") for entry in (direct, through)]
    return None if codes == [-32602, -32602] else f"an unknown prompt gave {short(through)}"


def question_aside(direct, through, eras, _plan):
    """A 2026 client cannot be asked outside its own call, so a question on another stream may come back cancelled."""
    if eras != ("2026", "2025"):
        return False
    text = json.dumps(through.get("result", {}))
    return None if '\\"cancel\\"' in text else False


SPECIAL = {
    "tools": tools,
    "structured array": structured_array,
    "prompt unknown": prompt_unknown,
    "question aside": question_aside,
}

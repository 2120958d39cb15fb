"""The kit's endpoint on the Python SDK.

    python server.py --port N --era both|legacy|stateless

`both` answers 2026-07-28 and, with sessions, the 2025 revisions; `legacy` is a server that never heard of 2026;
`stateless` is one of those that keeps no session and answers with plain JSON.
"""

import argparse
import base64
import json
import pathlib
import re
import warnings

import anyio
import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

warnings.simplefilter("ignore")  # logging is deprecated in 2026-07-28, and still to be relayed

SURFACE = json.loads((pathlib.Path(__file__).parent / "surface.json").read_text(encoding="utf-8"))
begun: set[str] = set()
cancelled: set[str] = set()
watchers: dict[str, list] = {}  # uri → sessions of 2025 that subscribed to it
sessions: dict[int, object] = {}  # sessions of 2025, for announcements
bus = InMemorySubscriptionBus()


def modern(ctx) -> bool:
    return ctx.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS


def text(value: str, **more) -> dict:
    return {"content": [{"type": "text", "text": value}], **more}


def as_json(value) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# ---- tools -----------------------------------------------------------------------------------------------------------


async def say(ctx, args, params):
    words = args["text"]
    return {
        "content": [
            {"type": "text", "text": words, "annotations": {"audience": ["user"], "priority": 1}},
            {"type": "text", "text": words.upper(), "annotations": {"audience": ["assistant"], "priority": 0.25}},
        ],
        "_meta": {"interop.example/length": len(words)},
    }


async def echo(ctx, args, params):
    return text(as_json(args))


async def picture(ctx, args, params):
    data = SURFACE["contents"]["kit://pixel.png"]["blob"]
    return {"content": [{"type": "image", "mimeType": "image/png", "data": data}]}


async def fill(ctx, args, params):
    return text(("0123456789" * (args["chars"] // 10 + 1))[: args["chars"]])


async def embed(ctx, args, params):
    return {"content": [{"type": "resource", "resource": contents("kit://notes/plain")}]}


async def link(ctx, args, params):
    note = {"uri": "kit://notes/plain", "name": "plain", "mimeType": "text/markdown", "size": 24}
    return {"content": [{"type": "resource_link", **note}]}


async def measure(ctx, args, params):
    values = args["values"]
    structured = {"count": len(values), "mean": sum(values) / len(values)}
    return text(as_json(structured), structuredContent=structured)


async def colours(ctx, args, params):
    structured = ["red", "green"]
    return text(as_json(structured), structuredContent=structured)


async def fail(ctx, args, params):
    return text("this tool always fails", isError=True)


async def refuse(ctx, args, params):
    raise MCPError(4711, "the kit refuses", {"why": ["always", {"depth": 2}]})


async def steps(ctx, args, params):
    for step in range(1, args["count"] + 1):
        await anyio.sleep(args["pauseMs"] / 1000)
        await ctx.session.report_progress(step, args["count"], f"step {step}")
    return text(f"{args['count']} steps done")


async def nap(ctx, args, params):
    begun.add(args.get("key", ""))
    try:
        await anyio.sleep(args["ms"] / 1000)
    except anyio.get_cancelled_exc_class():
        cancelled.add(args.get("key", ""))
        raise
    return text("slept well")


async def nap_began(ctx, args, params):
    while args["key"] not in begun:
        await anyio.sleep(0.01)
    return text("it began")


async def was_cancelled(ctx, args, params):
    with anyio.move_on_after(2):
        while args["key"] not in cancelled:
            await anyio.sleep(0.05)
    return text("yes" if args["key"] in cancelled else "no")


async def put(ctx, question, *, aside=False):
    """Asks the user on a 2025 connection."""
    related = None if aside else ctx.request_id
    reply = await ctx.session.elicit_form(question["message"], question["requestedSchema"], related_request_id=related)
    return reply.model_dump(by_alias=True, exclude_none=True, mode="json")


def inputs(questions: dict, state: str | None = None) -> types.InputRequiredResult:
    asked = {
        key: {"method": "elicitation/create", "params": {"mode": "form", **question}} for key, question in questions.items()
    }
    return types.InputRequiredResult.model_validate({"inputRequests": asked, "requestState": state})


def replies(params) -> dict:
    given = params.input_responses or {}
    return {key: reply.model_dump(by_alias=True, exclude_none=True, mode="json") for key, reply in given.items()}


async def reply_or_question(ctx, params, question, *, aside=False):
    """The user's reply, as JSON text; or the question, for a 2026 client to come back with the reply."""
    if not modern(ctx):
        return as_json(await put(ctx, question, aside=aside))
    given = replies(params)
    return as_json(given["first"]) if given else inputs({"first": question})


async def ask(ctx, args, params, aside=False, question=SURFACE["question"]):
    reply = await reply_or_question(ctx, params, question, aside=aside)
    return text(reply) if isinstance(reply, str) else reply


async def ask_named(ctx, args, params):
    return await ask(ctx, args, params, question={**SURFACE["question"], "message": f"Is it {args['name']}?"})


async def ask_aside(ctx, args, params):
    return await ask(ctx, args, params, aside=True)


async def ask_twice(ctx, args, params):
    if not modern(ctx):
        return text(as_json([await put(ctx, SURFACE["question"]), await put(ctx, SURFACE["secondQuestion"])]))
    given = replies(params)
    if "second" in given:
        return text(as_json([json.loads(params.request_state), given["second"]]))
    if "first" in given:
        return inputs({"second": SURFACE["secondQuestion"]}, as_json(given["first"]))
    return inputs({"first": SURFACE["question"]}, "")


async def ask_web(ctx, args, params):
    question = SURFACE["webQuestion"]
    if modern(ctx):
        given = replies(params)
        return text(as_json(given["web"])) if given else inputs({"web": {"mode": "url", **question}})
    reply = await ctx.session.elicit_url(question["message"], question["url"], "kit-1", related_request_id=ctx.request_id)
    return text(as_json(reply.model_dump(by_alias=True, exclude_none=True, mode="json")))


async def log(ctx, args, params):
    for level, data in [("debug", "a detail"), ("info", {"step": 1}), ("warning", ["careful"])]:
        await ctx.session.send_log_message(level, data, "kit", related_request_id=ctx.request_id)
    return text("logged")


async def route(ctx, args, params):
    region, header = args["region"], ctx.request.headers.get("mcp-param-region")
    plain = re.fullmatch(r"[\x21-\x7e]+", region)
    wanted = region if plain else f"=?base64?{base64.b64encode(region.encode()).decode()}?="
    if modern(ctx) and header != wanted:
        raise MCPError(4712, f"Mcp-Param-Region is {header}, not {wanted}")
    return text(f"routed to {region}")


async def touch(ctx, args, params):
    await bus.publish(ResourceUpdated(uri=args["uri"]))
    for session in watchers.get(args["uri"], []):
        await session.send_resource_updated(args["uri"])
    return text("touched")


async def announce(ctx, args, params):
    await bus.publish(ToolsListChanged())
    if not modern(ctx):
        await ctx.session.send_tool_list_changed()
    return text("announced")


TOOLS = {
    "say": say, "echo": echo, "picture": picture, "embed": embed, "link": link, "measure": measure, "fail": fail,
    "refuse": refuse, "steps": steps, "nap": nap, "nap-began": nap_began, "was-cancelled": was_cancelled, "ask": ask, "ask-twice": ask_twice,
    "ask-aside": ask_aside, "ask-web": ask_web, "ask-named": ask_named, "fill": fill, "log": log, "route": route, "touch": touch, "announce": announce,
}  # fmt: skip
MODERN_TOOLS = {"colours": colours}

# ---- resources, prompts, completion ----------------------------------------------------------------------------------


def contents(uri: str) -> dict:
    if known := SURFACE["contents"].get(uri):
        return {"uri": uri, **known}
    if room := re.fullmatch(r"kit://rooms/([^/]+)", uri):
        return {"uri": uri, "mimeType": "application/json", "text": as_json({"room": room[1]})}
    raise MCPError(-32602, f"there is no {uri}", {"uri": uri})


def page(key, items, cursor):
    start = int(cursor) if cursor else 0
    end = start + SURFACE["pageSize"]
    return {key: items[start:end], **({"nextCursor": str(end)} if end < len(items) else {})}


def lister(model, key, surface_key=None):
    async def handler(ctx, params):
        items = SURFACE[surface_key or key]
        if key == "tools" and modern(ctx):
            items = items + SURFACE["modernTools"]
        return model.model_validate(page(key, items, params.cursor if params else None))

    return handler


async def call_tool(ctx, params):
    tool = TOOLS.get(params.name) or (modern(ctx) and MODERN_TOOLS.get(params.name))
    if not tool:
        raise MCPError(-32602, f"there is no tool {params.name}")
    result = await tool(ctx, params.arguments or {}, params)
    return types.CallToolResult.model_validate(result) if isinstance(result, dict) else result


async def read_resource(ctx, params):
    if params.uri == "kit://asked":
        reply = await reply_or_question(ctx, params, SURFACE["question"])
        if not isinstance(reply, str):
            return reply
        item = {"uri": params.uri, "mimeType": "application/json", "text": reply}
        return types.ReadResourceResult.model_validate({"contents": [item]})
    return types.ReadResourceResult.model_validate({"contents": [contents(params.uri)]})


async def get_prompt(ctx, params):
    args = params.arguments or {}
    if params.name == "greet":
        if not args.get("who"):
            raise MCPError(-32602, "greet whom?")
        words = f"Greet {args['who']} in a {args.get('tone', 'plain')} tone."
        messages = [
            {"role": "user", "content": {"type": "text", "text": words}},
            {"role": "assistant", "content": {"type": "text", "text": "Certainly."}},
        ]
        return types.GetPromptResult.model_validate({"description": "A greeting", "messages": messages})
    if params.name == "look":
        blocks = [(await picture(ctx, {}, None))["content"][0], (await embed(ctx, {}, None))["content"][0]]
        return types.GetPromptResult.model_validate({"messages": [{"role": "user", "content": b} for b in blocks]})
    if params.name == "quiz":
        reply = await reply_or_question(ctx, params, SURFACE["question"])
        if not isinstance(reply, str):
            return reply
        message = {"role": "user", "content": {"type": "text", "text": reply}}
        return types.GetPromptResult.model_validate({"messages": [message]})
    raise MCPError(-32602, f"there is no prompt {params.name}")


async def complete(ctx, params):
    known = SURFACE["completions"].get(params.argument.name, [])
    values = [value for value in known if value.startswith(params.argument.value)]
    if params.context and (who := (params.context.arguments or {}).get("who")):
        values.append(f"for {who}")
    return types.CompleteResult.model_validate(
        {"completion": {"values": values, "total": len(values), "hasMore": False}}
    )


async def subscribe(ctx, params):
    watchers.setdefault(params.uri, []).append(ctx.session)
    return types.EmptyResult()


async def unsubscribe(ctx, params):
    watchers.pop(params.uri, None)
    return types.EmptyResult()


async def set_level(ctx, params):
    return types.EmptyResult()


server = Server(
    SURFACE["name"],
    version=SURFACE["version"],
    instructions=SURFACE["instructions"],
    on_list_tools=lister(types.ListToolsResult, "tools"),
    on_call_tool=call_tool,
    on_list_resources=lister(types.ListResourcesResult, "resources"),
    on_list_resource_templates=lister(types.ListResourceTemplatesResult, "resourceTemplates"),
    on_read_resource=read_resource,
    on_subscribe_resource=subscribe,
    on_unsubscribe_resource=unsubscribe,
    on_subscriptions_listen=ListenHandler(bus),
    on_list_prompts=lister(types.ListPromptsResult, "prompts"),
    on_get_prompt=get_prompt,
    on_completion=complete,
    on_set_logging_level=set_level,
)


def before_2026(app):
    """Hides the protocol version that only a 2026 server would understand."""

    async def wrapped(scope, receive, send):
        known = {version.encode() for version in HANDSHAKE_PROTOCOL_VERSIONS}
        headers = scope.get("headers", [])
        kept = [(name, value) for name, value in headers if name != b"mcp-protocol-version" or value in known]
        await app({**scope, "headers": kept}, receive, send)

    return wrapped


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--port", type=int, required=True)
    options.add_argument("--era", choices=["both", "legacy", "stateless"], required=True)
    chosen = options.parse_args()
    stateless = chosen.era == "stateless"
    app = server.streamable_http_app(stateless_http=stateless, json_response=stateless)
    uvicorn.run(
        app if chosen.era == "both" else before_2026(app), host="127.0.0.1", port=chosen.port, log_level="error"
    )

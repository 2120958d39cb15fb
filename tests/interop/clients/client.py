"""Walks a plan with the Python SDK's client and prints what came back as JSON.

    python client.py --era legacy|auto|2026-07-28 --plan FILE (--url URL | -- COMMAND ARGS…)
"""

import argparse
import json
import os
import pathlib
import sys
import time
import traceback
import warnings

import anyio
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

warnings.simplefilter("ignore")  # logging and subscribe are deprecated in 2026-07-28, and still to be relayed


def dump(model):
    return model.model_dump(by_alias=True, exclude_unset=True, mode="json")


class Walk:
    def __init__(self, client_args, capabilities):
        self.events, self.answers = [], []
        if "elicitation" in capabilities:
            client_args["elicitation_callback"] = self.elicit
        if "roots" in capabilities:
            client_args["list_roots_callback"] = self.roots
        if "sampling" in capabilities:
            client_args["sampling_callback"] = self.sample
        self.client = Client(
            **client_args,
            client_info=types.Implementation(name="interop", version="1"),
            logging_callback=self.logged,
            message_handler=self.message,
            log_level="debug",
            cache=None,
        )

    # ---- what the endpoint may start

    async def elicit(self, context, params):
        asked = dump(params)
        self.events.append(
            {"asked": {"message": asked["message"], "schema": asked.get("requestedSchema"), "url": asked.get("url")}}
        )
        if self.answers == "nothing":
            await anyio.sleep_forever()
        if self.answers == "the question":
            reply = {"action": "accept", "content": {"allow": True, "name": asked["message"]}}
        else:
            reply = self.answers.pop(0) if self.answers else {"action": "cancel"}
        return types.ElicitResult.model_validate(reply)

    async def roots(self, context):
        return types.ListRootsResult.model_validate({"roots": [{"uri": "file:///kit", "name": "kit"}]})

    async def sample(self, context, params):
        self.events.append({"sampled": dump(params)["messages"]})
        content = types.TextContent(type="text", text="a sample")
        return types.CreateMessageResult(role="assistant", model="interop", content=content)

    async def logged(self, params):
        self.events.append({"log": dump(params)})

    async def message(self, message):
        if isinstance(message, types.ResourceUpdatedNotification):
            self.events.append({"updated": message.params.uri})

    async def progressed(self, progress, total, message):
        report = {"progress": progress, "total": total, "message": message}
        self.events.append({"progress": {key: value for key, value in report.items() if value is not None}})

    # ---- what a plan may ask for

    @property
    def modern(self):
        return self.client.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS

    async def call(self, step):
        callback = self.progressed if step.get("progress") else None
        return await self.client.call_tool(step["tool"], step.get("arguments", {}), progress_callback=callback)

    async def until(self, condition, seconds):
        with anyio.move_on_after(seconds):
            while not condition():
                await anyio.sleep(0.02)

    async def do_hello(self, step):
        return {"instructions": self.client.instructions, "capabilities": dump(self.client.server_capabilities)}

    async def do_list(self, step):
        what = step["what"]
        method = {"resourceTemplates": "list_resource_templates"}.get(what, f"list_{what}")
        items, cursor = [], None
        while True:
            page = dump(await getattr(self.client, method)(cursor=cursor))
            items += page[what]
            cursor = page.get("nextCursor")
            if cursor is None:
                return {**page, what: items}

    async def do_read(self, step):
        return dump(await self.client.read_resource(step["uri"]))

    async def do_prompt(self, step):
        return dump(await self.client.get_prompt(step["prompt"], step.get("arguments")))

    async def do_complete(self, step):
        kind = types.PromptReference if step["ref"]["type"] == "ref/prompt" else types.ResourceTemplateReference
        context = step.get("context", {}).get("arguments")
        return dump(await self.client.complete(kind.model_validate(step["ref"]), step["argument"], context))

    async def do_call(self, step):
        if "log" in step and not self.modern:
            await self.client.set_logging_level(step["log"])
        return dump(await self.call(step))

    async def do_crowd(self, step):
        results = {}

        async def one(name):
            try:
                results[name] = dump(await self.call({"tool": step["tool"], "arguments": {"name": name}}))["content"]
            except MCPError as refusal:
                results[name] = {"code": refusal.error.code}

        async with anyio.create_task_group() as group:
            for name in step["names"]:
                group.start_soon(one, name)
        self.events.sort(key=lambda event: event["asked"]["message"])
        return {"results": [results[name] for name in step["names"]]}

    async def do_cancel(self, step):
        settled = "with a result"
        async with anyio.create_task_group() as group:

            async def stop():
                if "when" in step:
                    await self.call(step["when"])
                elif self.answers == "nothing":
                    await self.until(lambda: any("asked" in event for event in self.events), 5)
                else:
                    await anyio.sleep(step["afterMs"] / 1000)
                scope.cancel()

            group.start_soon(stop)
            with anyio.CancelScope() as scope:
                await self.call(step)
            if scope.cancelled_caught:
                settled = "cancelled"
        self.events.append({"settled": settled})
        return dump(await self.call(step["witness"]))

    async def do_overtake(self, step):
        order, results = [], {}

        async def one(name):
            results[name] = dump(await self.call(step[name]))["content"]
            order.append(name)

        async with anyio.create_task_group() as group:
            group.start_soon(one, "slow")
            await anyio.sleep(0)
            group.start_soon(one, "quick")
        return {"order": order, "results": [results["slow"], results["quick"]]}

    async def do_updates(self, step):
        uri = step["uri"]

        def updated():
            return any("updated" in event for event in self.events)

        if not self.modern:
            await self.client.subscribe_resource(uri)
            await self.call(step["trigger"])
            await self.until(updated, 3)
            await self.client.unsubscribe_resource(uri)
            return {}
        async with self.client.listen(resource_subscriptions=[uri]):
            await self.call(step["trigger"])
            await self.until(updated, 3)
        return {}

    async def do_unsolicitedLog(self, step):
        if self.modern:
            return {"skipped": "a modern client gets logs inside its own requests alone"}
        await self.client.set_logging_level(step["level"])
        await self.call(step["on"])
        await self.until(lambda: self.events, 3)
        await self.call(step["off"])
        arrived = bool(self.events)
        self.events = []
        return {"arrived": arrived}

    async def walk(self, steps, report):
        async with self.client:
            report["version"] = self.client.protocol_version
            for step in steps:
                self.events, self.answers = [], step.get("answers", [])
                entry, begun = {}, time.monotonic()
                try:
                    entry["result"] = await getattr(self, "do_" + step["do"])(step)
                except MCPError as refusal:
                    entry["error"] = dump(refusal.error)
                except Exception as trouble:
                    entry["error"] = {"code": None, "message": f"{type(trouble).__name__}: {trouble}"}
                entry["ms"] = round((time.monotonic() - begun) * 1000)
                seen = len(self.events)
                await anyio.sleep(step.get("settleMs", 0) / 1000)
                entry["events"] = self.events
                if len(self.events) > seen:
                    entry["late"] = self.events[seen:]
                report["steps"][step["name"]] = entry


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--era", required=True)
    options.add_argument("--plan", required=True)
    options.add_argument("--url")
    argv, command = sys.argv[1:], []
    if "--" in argv:
        cut = argv.index("--")
        argv, command = argv[:cut], argv[cut + 1 :]
    chosen = options.parse_args(argv)
    plan = json.loads(pathlib.Path(chosen.plan).read_text(encoding="utf-8"))
    server = chosen.url or StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    report = {"steps": {}, "notices": []}
    try:
        walk = Walk({"server": server, "mode": chosen.era}, plan.get("capabilities", {"elicitation": {}}))
        anyio.run(walk.walk, plan["steps"], report)
    except BaseException:
        report["failed"] = traceback.format_exc()
    json.dump(report, sys.stdout)


if __name__ == "__main__":
    main()

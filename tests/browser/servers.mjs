// An endpoint that wants a sign-in and the authorization server that it names, on loopback: just what a browser needs.
// What a client must not do is judged by tests/it; here it is what a person sees.

import { createHash, randomUUID } from "node:crypto";
import { createServer } from "node:http";

const TOOLS = [{ name: "echo", description: "Return the text.", inputSchema: { type: "object" } }];

async function listen(respond) {
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (text) => (body += text)).on("end", () => respond(request, body, response));
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const close = () => new Promise((done) => server.close(done).closeAllConnections());
  return { origin: `http://127.0.0.1:${server.address().port}`, close };
}

function answer(response, status, content, headers = {}) {
  const isText = typeof content === "string";
  const type = isText ? "text/html; charset=utf-8" : "application/json";
  response.writeHead(status, { "content-type": type, ...headers }).end(isText ? content : JSON.stringify(content));
}

/** Starts both. `page(allow, deny)` is the consent page, given the two locations that it may lead to. */
export async function start(page) {
  const codes = new Map();
  const tokens = new Set();

  const authority = await listen((request, body, response) => {
    const url = new URL(request.url, authority.origin);
    switch (url.pathname) {
      case "/.well-known/oauth-authorization-server":
        return answer(response, 200, {
          issuer: authority.origin,
          authorization_endpoint: `${authority.origin}/authorize`,
          token_endpoint: `${authority.origin}/token`,
          registration_endpoint: `${authority.origin}/register`,
          response_types_supported: ["code"],
          code_challenge_methods_supported: ["S256"],
          token_endpoint_auth_methods_supported: ["none"],
          authorization_response_iss_parameter_supported: true,
        });
      case "/favicon.ico":
        return answer(response, 204, "");
      case "/register":
        return answer(response, 201, { ...JSON.parse(body), client_id: randomUUID() });
      case "/authorize": {
        const asked = url.searchParams;
        const back = (parameters) => {
          const to = new URL(asked.get("redirect_uri"));
          const said = { ...parameters, state: asked.get("state"), iss: authority.origin };
          Object.entries(said).forEach(([name, value]) => to.searchParams.set(name, value));
          return to.href;
        };
        const code = randomUUID();
        codes.set(code, asked.get("code_challenge"));
        const denied = { error: "access_denied", error_description: "<b>the words of the server</b>" };
        return answer(response, 200, page(back({ code }), back(denied)));
      }
      case "/token": {
        const form = new URLSearchParams(body);
        const hash = createHash("sha256").update(form.get("code_verifier") ?? "").digest("base64url");
        const isRight = codes.get(form.get("code")) === hash;
        codes.delete(form.get("code"));
        if (!isRight) return answer(response, 400, { error: "invalid_grant" });
        const token = randomUUID();
        tokens.add(token);
        return answer(response, 200, { access_token: token, token_type: "Bearer", expires_in: 3600 });
      }
      default:
        return answer(response, 404, "");
    }
  });

  const endpoint = await listen((request, body, response) => {
    if (request.url.startsWith("/.well-known/oauth-protected-resource")) {
      return answer(response, 200, { resource: `${endpoint.origin}/mcp`, authorization_servers: [authority.origin] });
    }
    const token = request.headers.authorization?.replace("Bearer ", "");
    if (!tokens.has(token)) return answer(response, 401, {}, { "www-authenticate": "Bearer" });
    if (request.method !== "POST") return answer(response, 405, {});
    const { id, method, params } = JSON.parse(body);
    if (id === undefined) return answer(response, 202, {});
    const results = {
      initialize: () => ({
        protocolVersion: "2025-11-25",
        capabilities: { tools: {} },
        serverInfo: { name: "here", version: "1" },
      }),
      "tools/list": () => ({ tools: TOOLS }),
      "tools/call": () => ({ content: [{ type: "text", text: params.arguments.text }] }),
    };
    const result = results[method]?.();
    const said = result ? { result } : { error: { code: -32601, message: "Method not found" } };
    return answer(response, 200, { jsonrpc: "2.0", id, ...said });
  });

  return {
    url: `${endpoint.origin}/mcp`,
    close: () => Promise.all([authority.close(), endpoint.close()]),
  };
}

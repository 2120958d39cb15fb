// The kit's endpoint on the TypeScript server SDK.
//   node server.mjs --port N --era both|legacy|stateless
// `both` answers 2026-07-28 and, with sessions, the 2025 revisions; `legacy` is a server that never heard of 2026;
// `stateless` is one of those that keeps no session and answers with plain JSON.
import { createServer } from 'node:http';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  createMcpHandler,
  isLegacyRequest,
  ProtocolError,
  Server,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import { toNodeHandler } from '@modelcontextprotocol/node';

const surface = JSON.parse(readFileSync(new URL('./surface.json', import.meta.url), 'utf8'));
const option = name => process.argv[process.argv.indexOf(`--${name}`) + 1];
const text = value => ({ content: [{ type: 'text', text: value }] });

const begun = new Set();
const cancelled = new Set();
const sessions = new Map(); // session id → { transport, server, uris }

// ---- tools ------------------------------------------------------------------------------------------------------

const tools = {
  say: ({ text: words }) => ({
    content: [
      { type: 'text', text: words, annotations: { audience: ['user'], priority: 1 } },
      { type: 'text', text: words.toUpperCase(), annotations: { audience: ['assistant'], priority: 0.25 } },
    ],
    _meta: { 'interop.example/length': words.length },
  }),
  echo: args => text(JSON.stringify(args)),
  picture: () => ({
    content: [{ type: 'image', mimeType: 'image/png', data: surface.contents['kit://pixel.png'].blob }],
  }),
  fill: ({ chars }) => text('0123456789'.repeat(Math.ceil(chars / 10)).slice(0, chars)),
  embed: () => ({ content: [{ type: 'resource', resource: contents('kit://notes/plain') }] }),
  link: () => ({
    content: [{ type: 'resource_link', uri: 'kit://notes/plain', name: 'plain', mimeType: 'text/markdown', size: 24 }],
  }),
  measure: ({ values }) => {
    const structuredContent = { count: values.length, mean: values.reduce((a, b) => a + b, 0) / values.length };
    return { ...text(JSON.stringify(structuredContent)), structuredContent };
  },
  colours: () => {
    const structuredContent = ['red', 'green'];
    return { ...text(JSON.stringify(structuredContent)), structuredContent };
  },
  fail: () => ({ ...text('this tool always fails'), isError: true }),
  refuse: () => {
    throw new ProtocolError(4711, 'the kit refuses', { why: ['always', { depth: 2 }] });
  },
  steps: async ({ count, pauseMs }, ctx) => {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    for (let step = 1; step <= count; step++) {
      await sleep(pauseMs);
      if (progressToken !== undefined) {
        const params = { progressToken, progress: step, total: count, message: `step ${step}` };
        await ctx.mcpReq.notify({ method: 'notifications/progress', params });
      }
    }
    return text(`${count} steps done`);
  },
  nap: async ({ ms, key }, ctx) => {
    begun.add(key);
    try {
      await sleep(ms, undefined, { signal: ctx.mcpReq.signal });
    } catch (reason) {
      cancelled.add(key);
      throw reason;
    }
    return text('slept well');
  },
  'nap-began': async ({ key }) => {
    while (!begun.has(key)) await sleep(10);
    return text('it began');
  },
  'was-cancelled': async ({ key }) => {
    for (let waited = 0; waited < 2000 && !cancelled.has(key); waited += 50) await sleep(50);
    return text(cancelled.has(key) ? 'yes' : 'no');
  },
  ask: (_args, ctx) => {
    const reply = ctx.mcpReq.inputResponses?.first;
    return reply ? text(JSON.stringify(reply)) : inputs({ first: surface.question });
  },
  'ask-twice': (_args, ctx) => {
    const { first, second } = ctx.mcpReq.inputResponses ?? {};
    const state = ctx.mcpReq.requestState();
    if (second) return text(JSON.stringify([JSON.parse(state), second]));
    if (first) return inputs({ second: surface.secondQuestion }, JSON.stringify(first));
    return inputs({ first: surface.question }, '');
  },
  'ask-aside': async (args, ctx) => {
    const session = sessions.get(ctx.sessionId);
    if (!session) return tools.ask(args, ctx);
    return text(JSON.stringify(await session.server.elicitInput(surface.question)));
  },
  'ask-named': ({ name }, ctx) => {
    const reply = ctx.mcpReq.inputResponses?.first;
    return reply ? text(JSON.stringify(reply)) : inputs({ first: { ...surface.question, message: `Is it ${name}?` } });
  },
  'ask-web': (_args, ctx) => {
    const reply = ctx.mcpReq.inputResponses?.web;
    return reply ? text(JSON.stringify(reply)) : inputs({ web: { mode: 'url', ...surface.webQuestion } });
  },
  log: async (_args, ctx) => {
    await ctx.mcpReq.log('debug', 'a detail', 'kit');
    await ctx.mcpReq.log('info', { step: 1 }, 'kit');
    await ctx.mcpReq.log('warning', ['careful'], 'kit');
    return text('logged');
  },
  route: ({ region }, ctx) => {
    const header = ctx.http?.req?.headers.get('mcp-param-region');
    const encoded = /^[\x21-\x7e]+$/.test(region) ? region : `=?base64?${Buffer.from(region).toString('base64')}?=`;
    const wanted = ctx.mcpReq.envelope ? encoded : header;
    if (header !== wanted) throw new ProtocolError(4712, `Mcp-Param-Region is ${header}, not ${wanted}`);
    return text(`routed to ${region}`);
  },
  touch: async ({ uri }) => {
    modern.notify.resourceUpdated(uri);
    for (const { server, uris } of sessions.values()) if (uris.has(uri)) await server.sendResourceUpdated({ uri });
    return text('touched');
  },
  announce: async () => {
    modern.notify.toolsChanged();
    for (const { server } of sessions.values()) await server.sendToolListChanged();
    return text('announced');
  },
};

/** An `input_required` result; towards a 2025 client the SDK turns it into requests by itself. */
function inputs(questions, requestState) {
  const inputRequests = {};
  for (const [key, params] of Object.entries(questions)) {
    inputRequests[key] = { method: 'elicitation/create', params: { mode: 'form', ...params } };
  }
  return { resultType: 'input_required', inputRequests, ...(requestState !== undefined && { requestState }) };
}

// ---- resources, prompts, completion -----------------------------------------------------------------------------

function read(uri, ctx) {
  if (uri !== 'kit://asked') return { contents: [contents(uri)] };
  const reply = ctx.mcpReq.inputResponses?.first;
  if (!reply) return inputs({ first: surface.question });
  return { contents: [{ uri, mimeType: 'application/json', text: JSON.stringify(reply) }] };
}

function contents(uri) {
  const known = surface.contents[uri];
  if (known) return { uri, ...known };
  const room = /^kit:\/\/rooms\/([^/]+)$/.exec(uri);
  if (room) return { uri, mimeType: 'application/json', text: JSON.stringify({ room: room[1] }) };
  throw new ProtocolError(-32602, `there is no ${uri}`, { uri });
}

function prompt({ name, arguments: args = {} }, ctx) {
  const user = content => ({ role: 'user', content });
  if (name === 'greet') {
    if (!args.who) throw new ProtocolError(-32602, 'greet whom?');
    const words = `Greet ${args.who} in a ${args.tone ?? 'plain'} tone.`;
    const reply = { role: 'assistant', content: { type: 'text', text: 'Certainly.' } };
    return { description: 'A greeting', messages: [user({ type: 'text', text: words }), reply] };
  }
  if (name === 'look') return { messages: [user(tools.picture().content[0]), user(tools.embed().content[0])] };
  if (name === 'quiz') {
    const reply = ctx.mcpReq.inputResponses?.first;
    if (!reply) return inputs({ first: surface.question });
    return { messages: [user({ type: 'text', text: JSON.stringify(reply) })] };
  }
  throw new ProtocolError(-32602, `there is no prompt ${name}`);
}

function complete({ ref, argument, context }) {
  if (ref.type === 'ref/prompt' && ref.name !== 'greet') throw new ProtocolError(-32602, 'nothing to complete');
  const values = (surface.completions[argument.name] ?? []).filter(value => value.startsWith(argument.value));
  if (context?.arguments?.who) values.push(`for ${context.arguments.who}`);
  return { completion: { values, total: values.length, hasMore: false } };
}

function page(items, cursor) {
  const from = cursor === undefined ? 0 : Number(cursor);
  const to = from + surface.pageSize;
  return [items.slice(from, to), to < items.length ? { nextCursor: String(to) } : {}];
}

// ---- one server instance: per request in 2026, per session in 2025 -----------------------------------------------

function build({ era }, uris = new Set()) {
  const capabilities = {
    tools: { listChanged: true },
    resources: { subscribe: true },
    prompts: {},
    completions: {},
    logging: {},
  };
  const info = { name: surface.name, version: surface.version };
  const server = new Server(info, { capabilities, instructions: surface.instructions });
  const listed = era === 'modern' ? [...surface.tools, ...surface.modernTools] : surface.tools;
  const list = (method, key, items) =>
    server.setRequestHandler(method, ({ params }) => {
      const [some, next] = page(items, params?.cursor);
      return { [key]: some, ...next };
    });
  list('tools/list', 'tools', listed);
  list('resources/list', 'resources', surface.resources);
  list('resources/templates/list', 'resourceTemplates', surface.resourceTemplates);
  list('prompts/list', 'prompts', surface.prompts);
  server.setRequestHandler('tools/call', ({ params }, ctx) => {
    const tool = tools[params.name];
    if (!listed.some(({ name }) => name === params.name)) throw new ProtocolError(-32602, `there is no tool ${params.name}`);
    return tool(params.arguments ?? {}, ctx);
  });
  server.setRequestHandler('resources/read', ({ params }, ctx) => read(params.uri, ctx));
  server.setRequestHandler('prompts/get', ({ params }, ctx) => prompt(params, ctx));
  server.setRequestHandler('completion/complete', ({ params }) => complete(params));
  if (era === 'legacy') {
    server.setRequestHandler('resources/subscribe', ({ params }) => (uris.add(params.uri), {}));
    server.setRequestHandler('resources/unsubscribe', ({ params }) => (uris.delete(params.uri), {}));
  }
  return server;
}

// ---- HTTP --------------------------------------------------------------------------------------------------------

const modern = createMcpHandler(build, { legacy: 'reject' });

async function legacy(request) {
  const id = request.headers.get('mcp-session-id');
  if (id) {
    const session = sessions.get(id);
    return session ? session.transport.handleRequest(request) : Response.json({ error: 'no such session' }, { status: 404 });
  }
  const uris = new Set();
  const server = build({ era: 'legacy' }, uris);
  const transport = new WebStandardStreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    onsessioninitialized: sessionId => void sessions.set(sessionId, { transport, server, uris }),
    onsessionclosed: sessionId => void sessions.delete(sessionId),
  });
  await server.connect(transport);
  return transport.handleRequest(request);
}

async function stateless(request) {
  if (request.method !== 'POST') return new Response(null, { status: 405, headers: { allow: 'POST' } });
  const server = build({ era: 'legacy' });
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  await server.connect(transport);
  return transport.handleRequest(request);
}

const both = async request => ((await isLegacyRequest(request)) ? legacy(request) : modern.fetch(request));
const fetch = { both, legacy, stateless }[option('era')];
createServer(toNodeHandler({ fetch })).listen(Number(option('port')), '127.0.0.1');

// Walks a plan with the TypeScript client SDK and prints what came back as JSON.
//   node client.mjs --era legacy|auto|2026-07-28 --plan FILE (--url URL | -- COMMAND ARGS…)
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const argv = process.argv.slice(2);
const cut = argv.includes('--') ? argv.indexOf('--') : argv.length;
const [options, [command, ...args]] = [argv.slice(0, cut), argv.slice(cut + 1)];
const option = name => (options.includes(`--${name}`) ? options[options.indexOf(`--${name}`) + 1] : undefined);
const era = option('era');
const { steps, capabilities = { elicitation: { form: {}, url: {} } } } = JSON.parse(readFileSync(option('plan'), 'utf8'));
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';

const notices = []; // what the SDK complains about, such as progress for a call that is over
let events = []; // what arrived during the current step, in order
let answers = []; // what the user will say when asked; or "the question", or "nothing"
let giveUp = () => {}; // ends a question nobody answers; the SDK waits for it even when the call is cancelled

const mode = era === 'legacy' || era === 'auto' ? era : { pin: era };
const client = new Client({ name: 'interop', version: '1' }, { capabilities, versionNegotiation: { mode } });
client.onerror = error => notices.push(String(error.message ?? error));
if (capabilities.elicitation) {
  client.setRequestHandler('elicitation/create', ({ params }) => {
    events.push({ asked: { message: params.message, schema: params.requestedSchema, url: params.url } });
    if (answers === 'the question') return { action: 'accept', content: { allow: true, name: params.message } };
    if (answers === 'nothing') return new Promise(resolve => (giveUp = () => resolve({ action: 'cancel' })));
    return answers.shift() ?? { action: 'cancel' };
  });
}
if (capabilities.roots) client.setRequestHandler('roots/list', () => ({ roots: [{ uri: 'file:///kit', name: 'kit' }] }));
if (capabilities.sampling) {
  client.setRequestHandler('sampling/createMessage', ({ params }) => {
    events.push({ sampled: params.messages });
    return { role: 'assistant', model: 'interop', content: { type: 'text', text: 'a sample' } };
  });
}
client.setNotificationHandler('notifications/message', ({ params }) => void events.push({ log: params }));
client.setNotificationHandler('notifications/resources/updated', ({ params }) => void events.push({ updated: params.uri }));

const modern = () => client.getProtocolEra() === 'modern';
const call = ({ tool, arguments: toolArguments = {}, log, progress }, options = {}) => {
  const params = { name: tool, arguments: toolArguments };
  if (log && modern()) params._meta = { [LOG_LEVEL]: log };
  if (progress) options.onprogress = report => void events.push({ progress: report });
  return client.callTool(params, options);
};
const until = async (condition, ms) => {
  for (let waited = 0; waited < ms && !condition(); waited += 20) await sleep(20);
};

const doings = {
  hello: () => ({ instructions: client.getInstructions(), capabilities: client.getServerCapabilities() }),
  list: ({ what }) => {
    const lists = {
      tools: () => client.listTools(),
      resources: () => client.listResources(),
      resourceTemplates: () => client.listResourceTemplates(),
      prompts: () => client.listPrompts(),
    };
    return lists[what]();
  },
  read: ({ uri }) => client.readResource({ uri }),
  prompt: ({ prompt, arguments: given }) => client.getPrompt({ name: prompt, arguments: given }),
  crowd: async ({ tool, names }) => {
    const one = name => call({ tool, arguments: { name } }).then(({ content }) => content, ({ code }) => ({ code }));
    const results = await Promise.all(names.map(one));
    events.sort((one, other) => one.asked.message.localeCompare(other.asked.message));
    return { results };
  },
  complete: ({ ref, argument, context }) => client.complete({ ref, argument, context }),
  call: async step => {
    if (step.log && !modern()) await client.setLoggingLevel(step.log);
    return call(step);
  },
  cancel: async step => {
    const stop = new AbortController();
    const running = call(step, { signal: stop.signal }).then(
      () => 'with a result',
      () => 'cancelled',
    );
    if (step.when) await call(step.when);
    else if (answers === 'nothing') await until(() => events.some(event => event.asked), 5000);
    else await sleep(step.afterMs);
    stop.abort('enough');
    giveUp();
    events.push({ settled: await running });
    return call(step.witness);
  },
  overtake: async ({ slow, quick }) => {
    const order = [];
    const note = name => result => (order.push(name), result.content);
    const results = await Promise.all([call(slow).then(note('slow')), call(quick).then(note('quick'))]);
    return { order, results };
  },
  updates: async ({ uri, trigger }) => {
    const listening = modern() ? await client.listen({ resourceSubscriptions: [uri] }) : undefined;
    if (!listening) await client.subscribeResource({ uri });
    await call(trigger);
    await until(() => events.some(event => event.updated), 3000);
    await (listening ? listening.close() : client.unsubscribeResource({ uri }));
    return {};
  },
  unsolicitedLog: async ({ level, on, off }) => {
    if (modern()) return { skipped: 'a modern client gets logs inside its own requests alone' };
    await client.setLoggingLevel(level);
    await call(on);
    await until(() => events.length > 0, 3000);
    await call(off);
    const count = events.length;
    events = [];
    return { arrived: count > 0 };
  },
};

const report = { steps: {}, notices };
const target = option('url')
  ? new StreamableHTTPClientTransport(new URL(option('url')))
  : new StdioClientTransport({ command, args, env: process.env });
try {
  await client.connect(target);
  report.version = client.getNegotiatedProtocolVersion();
  for (const step of steps) {
    events = [];
    answers = structuredClone(step.answers ?? []);
    const begun = Date.now();
    const entry = {};
    try {
      entry.result = await doings[step.do](step);
    } catch (error) {
      entry.error = { code: error.code, message: error.message, data: error.data };
    }
    entry.ms = Date.now() - begun;
    const seen = events.length;
    await sleep(step.settleMs ?? 0);
    entry.events = events;
    if (events.length > seen) entry.late = events.slice(seen);
    report.steps[step.name] = entry;
  }
} catch (error) {
  report.failed = String(error.stack ?? error);
}
await client.close();
process.stdout.write(JSON.stringify(report), () => process.exit(0));

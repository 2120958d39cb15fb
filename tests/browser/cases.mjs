// What a person sees in the browser at the end of a sign-in. Each case: a name, the consent page, and what has to hold.

import assert from "node:assert/strict";

import { Program } from "./program.mjs";
import { start } from "./servers.mjs";

const PLAIN = (allow, deny) =>
  `<!doctype html><title>consent</title><a id="allow" href="${escaped(allow)}">Allow</a> <a id="deny" href="${escaped(deny)}">Deny</a>`;

function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");
}

/** Starts everything, and gives it up at the end. */
async function within(setting, consent, act) {
  const servers = await start(consent);
  const program = new Program(setting.binary, servers.url, setting.args ?? ["--login"]);
  const context = await setting.browser.newContext(setting.context ?? {});
  const page = await context.newPage();
  const seen = { requests: [], errors: [] };
  page.on("request", (request) => seen.requests.push(request));
  page.on("console", (message) => message.type() === "error" && seen.errors.push(message.text()));
  page.on("pageerror", (error) => seen.errors.push(error.message));
  try {
    await act({ page, context, program, servers, seen, link: await program.link() });
  } finally {
    await context.close();
    program.kill();
    await servers.close();
  }
}

async function click(page, id) {
  const [response] = await Promise.all([
    page.waitForResponse((response) => new URL(response.url()).pathname === "/callback"),
    page.click(id),
  ]);
  await page.waitForLoadState();
  return response;
}

/** The page says that, in these words, and nothing else is on it. */
async function says(page, title, words) {
  assert.equal(await page.textContent("h1"), title);
  assert.equal(await page.title(), `${title} - mcp-hasp`);
  assert.match(await page.textContent("p"), words);
  assert.equal(await page.locator("script, img, iframe, form, a, link[rel=stylesheet]").count(), 0);
}

/** Where the callback is, of a link to sign in with. */
function callback(link) {
  return new URL(link).searchParams.get("redirect_uri");
}

async function signIn(setting) {
  await within(setting, PLAIN, async ({ page, program, seen, link }) => {
    await page.goto(link);
    const response = await click(page, "#allow");
    await says(page, "You are signed in", /close this tab/);
    assert.equal(response.status(), 200);
    const headers = await response.allHeaders();
    assert.match(headers["content-security-policy"], /^default-src 'none'; style-src 'sha256-[^']+'; img-src data:;/);
    assert.equal(headers["cache-control"], "no-store");
    assert.equal(headers["referrer-policy"], "no-referrer");
    assert.equal(headers["x-content-type-options"], "nosniff");
    assert.equal(headers["x-frame-options"], "DENY");
    assert.equal(headers["cross-origin-opener-policy"], "same-origin");
    assert.equal(headers["set-cookie"], undefined);
    assert.deepEqual(seen.errors, []);
    const own = seen.requests.filter((request) => request.url().startsWith(callback(link)));
    const after = seen.requests.slice(seen.requests.indexOf(own[0]) + 1).map((request) => request.url());
    assert.deepEqual(after.filter((url) => !url.startsWith("data:")), [], "the page loads something");
    assert.equal(await program.end(), 0, program.stderr);
  });
}

async function signInAndServe(setting) {
  const serving = { ...setting, args: [] };
  await within(serving, PLAIN, async ({ page, program, link }) => {
    await page.goto(link);
    await click(page, "#allow");
    await says(page, "You are signed in", /close this tab/);
    const hello = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "person", version: "1" } };
    const opened = await program.ask(1, "initialize", hello);
    assert.equal(opened.result?.serverInfo.name, "here", JSON.stringify(opened));
    const called = await program.ask(2, "tools/call", { name: "echo", arguments: { text: "hello" } });
    assert.equal(called.result?.content[0].text, "hello", JSON.stringify(called));
    program.child.stdin.end();
    assert.equal(await program.end(), 0, program.stderr);
  });
}

async function deny(setting) {
  await within(setting, PLAIN, async ({ page, program, seen, link }) => {
    await page.goto(link);
    const response = await click(page, "#deny");
    assert.equal(response.status(), 400);
    await says(page, "You are not signed in", /declined/);
    assert.doesNotMatch(await page.content(), /the words of the server/);
    assert.deepEqual(seen.errors.filter((text) => !text.includes("400")), []);
    assert.equal(await program.end(), 77);
  });
}

async function wrongState(setting) {
  await within(setting, PLAIN, async ({ page, context, program, link }) => {
    await page.goto(link);
    const other = await context.newPage();
    for (const [wrong, status] of [
      [`${callback(link)}?code=x&state=guessed`, 400],
      [`${callback(link)}?error=access_denied&state=guessed`, 400],
      [callback(link), 400],
      [callback(link).replace("/callback", "/"), 404],
      [callback(link).replace("/callback", "/favicon.ico"), 404],
    ]) {
      const response = await other.goto(wrong);
      assert.equal(response.status(), status, wrong);
      await says(other, "Nothing was done", /goes on/);
    }
    // A page of somebody else that guesses, and one that reaches the port by another name.
    await page.evaluate((url) => fetch(`${url}?code=x&state=guessed`, { mode: "no-cors" }), callback(link));
    const named = callback(link).replace("127.0.0.1", "localhost");
    assert.equal((await other.goto(`${named}?code=x&state=guessed`)).status(), 400);
    await click(page, "#allow");
    await says(page, "You are signed in", /close this tab/);
    assert.equal(await program.end(), 0, program.stderr);
  });
}

async function secondVisit(setting) {
  await within(setting, PLAIN, async ({ page, program, link }) => {
    await page.goto(link);
    const response = await click(page, "#allow");
    assert.equal(await program.end(), 0, program.stderr);
    await assert.rejects(page.goto(response.url()), /ERR_CONNECTION_REFUSED/);
  });
}

/** The browser fetches ahead what the person may click: that is no answer. */
async function prefetch(setting) {
  const eager = (allow, deny) => `${PLAIN(allow, deny)}<link rel="prefetch" href="${escaped(allow)}">`;
  await within(setting, eager, async ({ page, program, link }) => {
    const ahead = page.waitForResponse((response) => response.url().startsWith(callback(link)));
    await page.goto(link);
    const fetched = await ahead;
    assert.match((await fetched.request().allHeaders())["sec-purpose"] ?? "", /prefetch/);
    assert.equal(fetched.status(), 503);
    const response = await click(page, "#allow");
    assert.equal(response.status(), 200);
    await says(page, "You are signed in", /close this tab/);
    assert.equal(await program.end(), 0, program.stderr);
  });
}

/** Nobody shows it within a page of their own. */
async function framed(setting) {
  await within(setting, PLAIN, async ({ page, link, seen }) => {
    await page.goto(link);
    await page.evaluate((url) => {
      const frame = document.createElement("iframe");
      frame.src = `${url}?code=x&state=guessed`;
      document.body.append(frame);
      return new Promise((done) => (frame.onload = done));
    }, callback(link));
    const inner = page.frames().find((frame) => frame !== page.mainFrame());
    assert.doesNotMatch(await inner.content(), /Nothing was done/);
    assert.ok(seen.errors.some((text) => /frame-ancestors|X-Frame-Options/i.test(text)), seen.errors.join("\n"));
  });
}

/** How bright a colour is (WCAG 2.2, relative luminance). */
function luminance(colour) {
  const [r, g, b] = colour.match(/\d+(\.\d+)?/g).map((part) => {
    const value = Number(part) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(one, other) {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

/** Readable by WCAG 2.2: contrast of level AAA, nothing beside the screen, letters of 16 px and more. */
async function readable(setting) {
  for (const colorScheme of ["light", "dark"]) {
    for (const [device, viewport] of [["phone", { width: 360, height: 640 }], ["desktop", { width: 1280, height: 800 }]]) {
      for (const [button, title] of [["#allow", "You are signed in"], ["#deny", "You are not signed in"]]) {
        const context = { colorScheme, viewport, javaScriptEnabled: false };
        await within({ ...setting, context }, PLAIN, async ({ page, link }) => {
          await page.goto(link);
          await click(page, button);
          await says(page, title, /close this tab/);
          const style = (selector, name) =>
            page.locator(selector).evaluate((element, name) => getComputedStyle(element)[name], name);
          const ground = await style("body", "backgroundColor");
          assert.equal(luminance(ground) < 0.5, colorScheme === "dark", ground);
          for (const selector of ["h1", "p"]) {
            const ratio = contrast(await style(selector, "color"), ground);
            assert.ok(ratio >= 7, `${colorScheme} ${selector}: ${ratio}`);
            assert.ok(parseFloat(await style(selector, "fontSize")) >= 16, `${selector} is small`);
          }
          const size = await page.locator("html").evaluate((html) => [html.scrollWidth, html.scrollHeight]);
          assert.ok(size[0] <= viewport.width && size[1] <= viewport.height, `${device}: ${size}`);
          await page.screenshot({ path: `${setting.pictures}/${colorScheme}-${device}-${button.slice(1)}.png` });
        });
      }
    }
  }
}

export const CASES = {
  "sign in": signIn,
  "sign in and serve": signInAndServe,
  deny,
  "wrong state": wrongState,
  "second visit": secondVisit,
  prefetch,
  framed,
  readable,
};

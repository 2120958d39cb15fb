// Signs in with a real browser. See README.md.
//
//   node tests/browser/run.mjs [--binary FILE] [CASE…]
//
// Ends with a line `N passed, N failed`, and with 1 when a case failed.

import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import { CASES } from "./cases.mjs";

const HERE = dirname(fileURLToPath(import.meta.url));
const ROOT = resolve(HERE, "../..");
const CACHE = join(ROOT, ".cache/browser");
const LIMIT = 60_000; // milliseconds that a case may take
// No sandbox, for root has none; the rest keeps it from calling anybody but us.
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

/** The driver, pinned; it brings no browser of its own. */
function driver() {
  const [pins, home] = [join(HERE, "package.json"), join(CACHE, "driver")];
  const mark = join(home, "installed.json");
  if (!existsSync(mark) || readFileSync(mark, "utf8") !== readFileSync(pins, "utf8")) {
    rmSync(home, { recursive: true, force: true });
    mkdirSync(home, { recursive: true });
    cpSync(pins, join(home, "package.json"));
    const quiet = ["--no-audit", "--no-fund", "--ignore-scripts", "--no-package-lock", "--loglevel=error"];
    execFileSync("npm", ["install", ...quiet], { cwd: home, stdio: ["ignore", "inherit", "inherit"] });
    cpSync(pins, mark);
  }
  return createRequire(join(home, "index.js"))("playwright-core");
}

/** The browser of this machine; where there is none, that of its package manager. */
function chromium() {
  const names = ["chromium", "chromium-browser", "google-chrome"];
  const find = () => {
    const places = (process.env.PATH ?? "").split(":").flatMap((folder) => names.map((name) => join(folder, name)));
    return process.env.CHROMIUM ?? places.find((file) => existsSync(file));
  };
  if (!find()) {
    const apt = (...args) => execFileSync("apt-get", args, { stdio: ["ignore", "ignore", "inherit"] });
    apt("update", "-qq");
    apt("install", "-y", "-qq", "--no-install-recommends", "chromium");
  }
  const found = find();
  if (!found) throw new Error("no Chromium; install one, or name it in CHROMIUM");
  return found;
}

const { values, positionals } = parseArgs({ options: { binary: { type: "string" } }, allowPositionals: true });
const binary = resolve(values.binary ?? join(process.env.CARGO_TARGET_DIR ?? join(ROOT, "target"), "release/mcp-hasp"));
const unknown = positionals.filter((name) => !(name in CASES));
if (unknown.length > 0) throw new Error(`no such case: ${unknown.join(", ")}; there are: ${Object.keys(CASES).join(", ")}`);

const pictures = join(CACHE, "pictures");
mkdirSync(pictures, { recursive: true });
const browser = await driver().chromium.launch({ executablePath: chromium(), args: FLAGS });
console.log(`Chromium ${browser.version()}`);
const counts = { passed: 0, failed: 0 };
for (const name of positionals.length > 0 ? positionals : Object.keys(CASES)) {
  const late = new Promise((_, fail) => setTimeout(fail, LIMIT, new Error("it takes too long")).unref());
  try {
    await Promise.race([CASES[name]({ browser, binary, pictures }), late]);
    counts.passed += 1;
    console.log(`ok      ${name}`);
  } catch (error) {
    counts.failed += 1;
    console.log(`FAILED  ${name}\n${error.stack}`);
  }
}
await browser.close();
console.log(`${counts.passed} passed, ${counts.failed} failed`);
process.exit(counts.failed > 0 ? 1 : 0);

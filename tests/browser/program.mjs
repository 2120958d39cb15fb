// The program as a person starts it: with a home and a PATH of its own, where the browser's opener is ours.

import { spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, watch, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const LIMIT = 20_000; // milliseconds; whoever waits until here has failed

export class Program {
  /** @param {string[]} args after the URL */
  constructor(binary, url, args) {
    this.home = mkdtempSync(join(tmpdir(), "browser-"));
    const bin = join(this.home, "bin");
    mkdirSync(bin);
    // Hands the link over in one piece.
    const opener = `#!/bin/sh\nprintf '%s' "$1" >"$HOME/link.part" && /bin/mv "$HOME/link.part" "$HOME/link"\n`;
    writeFileSync(join(bin, "xdg-open"), opener);
    chmodSync(join(bin, "xdg-open"), 0o700);
    this.stderr = "";
    this.stdout = "";
    this.child = spawn(binary, ["--url", url, ...args], { env: { HOME: this.home, PATH: bin, DISPLAY: ":0" } });
    this.child.stderr.setEncoding("utf8").on("data", (text) => (this.stderr += text));
    this.child.stdout.setEncoding("utf8").on("data", (text) => (this.stdout += text));
    this.ended = new Promise((done) => this.child.on("close", (code) => done(code)));
  }

  /** The link that was opened, and that stderr says too. */
  async link() {
    const link = await this.#until("link", () => {
      try {
        return readFileSync(join(this.home, "link"), "utf8");
      } catch {
        return undefined;
      }
    });
    if (!this.stderr.includes(link)) throw new Error(`the link is not on stderr: ${link}\n${this.stderr}`);
    return link;
  }

  /** Sends a request, and waits for its answer. */
  async ask(id, method, params) {
    this.child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    return this.#until(`answer to ${method}`, () =>
      this.stdout
        .split("\n")
        .slice(0, -1)
        .map((line) => JSON.parse(line))
        .find((message) => message.id === id),
    );
  }

  /** The exit code. */
  async end() {
    const late = new Promise((_, fail) => setTimeout(fail, LIMIT, new Error("it does not end")).unref());
    return Promise.race([this.ended, late]);
  }

  kill() {
    this.child.kill("SIGKILL");
    rmSync(this.home, { recursive: true, force: true });
  }

  /** Waits for something to be there: looks whenever the program said something or its home changed. */
  #until(what, look) {
    return new Promise((done, fail) => {
      const changes = watch(this.home);
      const check = () => {
        const found = look();
        if (found !== undefined) finish(done, found);
      };
      const timer = setTimeout(() => finish(fail, new Error(`no ${what}\n${this.stderr}`)), LIMIT);
      const finish = (how, value) => {
        clearTimeout(timer);
        changes.close();
        this.child.stdout.off("data", check);
        how(value);
      };
      changes.on("change", check);
      this.child.stdout.on("data", check);
      check();
    });
  }
}

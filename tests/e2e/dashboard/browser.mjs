// Headless Chromium by its DevTools protocol over a pipe: no package, no download, no port.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export class Browser {
  #process;
  #profile = mkdtempSync(join(tmpdir(), "berth-chromium."));
  #waiting = new Map();
  #listeners = new Map();
  #last = 0;

  constructor(chromium) {
    const flags = ["--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
      "--disable-background-networking", "--disable-component-update", "--disable-sync", "--force-color-profile=srgb", `--user-data-dir=${this.#profile}`, "about:blank"];
    this.#process = spawn(chromium, flags, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    let text = "";
    this.#process.stdio[4].setEncoding("utf8").on("data", (part) => {
      text += part;
      for (let end = text.indexOf("\0"); end >= 0; end = text.indexOf("\0")) {
        this.#take(JSON.parse(text.slice(0, end)));
        text = text.slice(end + 1);
      }
    });
    this.#process.on("exit", () => {
      for (const { reject } of this.#waiting.values()) reject(new Error("Chromium has ended"));
    });
  }

  #take(message) {
    if (message.id === undefined) {
      for (const listener of this.#listeners.get(message.sessionId) ?? []) listener(message.method, message.params);
      return;
    }
    const { resolve, reject, what } = this.#waiting.get(message.id) ?? {};
    this.#waiting.delete(message.id);
    if (message.error) reject?.(new Error(`${what}: ${message.error.message}`));
    else resolve?.(message.result);
  }

  send(method, params = {}, sessionId = undefined) {
    const id = ++this.#last;
    this.#process.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject, what: method }));
  }

  listen(sessionId, listener) {
    this.#listeners.set(sessionId, [...(this.#listeners.get(sessionId) ?? []), listener]);
  }

  /** A page of its own context: other cookies than the other pages'. */
  async page() {
    const { browserContextId } = await this.send("Target.createBrowserContext");
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank", browserContextId });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    const page = new Page(this, sessionId);
    await page.open();
    return page;
  }

  async close() {
    const gone = new Promise((resolve) => this.#process.on("exit", resolve));
    this.send("Browser.close").catch(() => undefined);
    await gone;
    rmSync(this.#profile, { recursive: true, force: true });
  }
}

export class Page {
  /** What must stay empty: errors of scripts, breaches of the content security policy. */
  complaints = [];
  /** Every address that was asked for. */
  requests = [];

  constructor(browser, sessionId) {
    this.browser = browser;
    this.sessionId = sessionId;
  }

  send(method, params) {
    return this.browser.send(method, params, this.sessionId);
  }

  async open() {
    this.browser.listen(this.sessionId, (method, params) => {
      if (method === "Runtime.exceptionThrown") this.complaints.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
      if (method === "Log.entryAdded" && params.entry.level === "error" && params.entry.source !== "network") this.complaints.push(params.entry.text);
      if (method === "Runtime.consoleAPICalled" && params.type === "error") this.complaints.push(params.args.map((one) => one.value ?? one.description).join(" "));
      if (method === "Page.javascriptDialogOpening") {
        this.complaints.push(`a dialog: ${params.message}`);
        void this.send("Page.handleJavaScriptDialog", { accept: false });
      }
      if (method === "Network.requestWillBeSent") this.requests.push(params.request.url);
    });
    for (const domain of ["Page", "Runtime", "Log", "Network"]) await this.send(`${domain}.enable`);
    await this.look(1280, 800, false);
  }

  /** Size of the window and the system's colours. */
  async look(width, height, isDark) {
    await this.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: width < 500 });
    await this.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: isDark ? "dark" : "light" }, { name: "prefers-reduced-motion", value: "reduce" }] });
  }

  async go(url) {
    await this.send("Page.navigate", { url });
  }

  async eval(expression) {
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(`${expression}: ${exceptionDetails.exception?.description ?? exceptionDetails.text}`);
    return result.value;
  }

  /** Until the expression is true; the error shows what is on the page. */
  /** Seconds of a quiet machine; a loaded one gets three times as many. */
  async until(expression, seconds = 20) {
    const end = Date.now() + 3 * seconds * 1000;
    for (;;) {
      const value = await this.eval(expression).catch(() => undefined); // A page that is being left answers nothing.
      if (value) return value;
      if (Date.now() > end) throw new Error(`never true: ${expression}\nthe page says: ${(await this.eval("document.body.innerText").catch(() => "")).slice(0, 600)}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  says(text, seconds) {
    return this.until(`document.body.innerText.includes(${JSON.stringify(text)})`, seconds);
  }

  async click(selector, text = "") {
    const wanted = `[...document.querySelectorAll(${JSON.stringify(selector)})].find((one) => one.innerText.includes(${JSON.stringify(text)}))`;
    await this.until(`!!${wanted}`);
    await this.eval(`${wanted}.click()`);
  }

  async key(key) {
    const codes = { ArrowRight: 39, ArrowDown: 40, ArrowLeft: 37, ArrowUp: 38, Enter: 13, Tab: 9, End: 35, Home: 36 };
    const text = key === "Enter" ? "\r" : undefined;
    await this.send("Input.dispatchKeyEvent", { type: "keyDown", key, code: key, windowsVirtualKeyCode: codes[key], text });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", key, code: key, windowsVirtualKeyCode: codes[key] });
  }

  async type(selector, text) {
    await this.until(`!!document.querySelector(${JSON.stringify(selector)})`);
    await this.eval(`{ const field = document.querySelector(${JSON.stringify(selector)}); field.value = ${JSON.stringify(text)}; field.dispatchEvent(new Event("input", { bubbles: true })); }`);
  }

  async choose(selector, value) {
    await this.eval(`{ const field = document.querySelector(${JSON.stringify(selector)}); field.value = ${JSON.stringify(value)}; field.dispatchEvent(new Event("change", { bubbles: true })); }`);
  }

  /** Gives files to a file field. */
  async files(selector, files) {
    const { root } = await this.send("DOM.getDocument");
    const { nodeId } = await this.send("DOM.querySelector", { nodeId: root.nodeId, selector });
    await this.send("DOM.setFileInputFiles", { nodeId, files });
  }

  /** The first canvas comes to have so many different colours (a blank one has one or two): it is drawn a frame after what it shows is known. */
  hasColours(count) {
    return this.untilDrawn(`new Set(data).size >= ${count}`);
  }

  /** Of `data`, the first canvas's pixels. */
  untilDrawn(condition) {
    return this.until(`(() => { const canvas = document.querySelector("canvas"); const data = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer); return ${condition}; })()`);
  }

  async shot(path) {
    const { data } = await this.send("Page.captureScreenshot", { format: "png" });
    writeFileSync(path, Buffer.from(data, "base64"));
  }
}

let passed = 0;
let failed = 0;

export async function check(what, run) {
  try {
    const result = await run();
    if (result === false) throw new Error("it is not so");
    ++passed;
  } catch (error) {
    ++failed;
    console.log(`FAIL ${what}\n     ${String(error.message).split("\n").slice(0, 12).join("\n     ")}`);
  }
}

export function finish() {
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
}

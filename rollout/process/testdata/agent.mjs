// An agent that does what its task says: the first word is a function, the rest its argument.

import { execFileSync, fork, spawn } from "node:child_process";
import { appendFileSync, fstatSync, mkdirSync, readdirSync, readFileSync, writeSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { basename } from "node:path";
import { isMainThread, Worker } from "node:worker_threads";
import { environment, importedWith, state } from "./early.mjs";

const { HOME, METER, OPENAI_API_KEY, OPENAI_BASE_URL, TMPDIR } = process.env;

function meet() {
  const link = connect(METER.split(":")[1], "127.0.0.1");
  link.write("here\n");
}

function descriptors() {
  const open = [];
  for (let d = 0; d < 4; d++) {
    try {
      if (d < 3 || fstatSync(d).isSocket()) open.push(d); // others are Node's own
    } catch {} // it is not open
  }
  return open;
}

const functions = {
  say: (text) => console.log("", text, ""),
  crash: () => { throw new RangeError("a bug"); },
  die: (signal) => process.kill(process.pid, signal),
  ignore: () => console.log("ignored"),
  fail(status) {
    console.log("not an answer");
    console.error("it went wrong");
    process.exitCode = Number(status);
  },
  flood(n) {
    writeSync(2, "x".repeat(100_000) + "the end");
    process.stdout.write("y".repeat(Number(n)));
  },
  quit(how) {
    if (how === "handler") process.on("exit", () => console.log("the last words"));
    if (how === "status") process.exit(4);
    if (how === "rejection") Promise.reject(new Error("nobody cares"));
  },
  async wait() { // for what never comes
    const nothing = new Promise(() => {});
    await nothing;
  },

  describe: () => console.log(JSON.stringify({
    argv: [basename(process.argv[0]), basename(process.argv[1]), ...process.argv.slice(2)], execArgv: process.execArgv,
    url: basename(import.meta.url), main: isMainThread, task: process.env.TASK, work: readdirSync("."), home: readdirSync(HOME),
    tmp: readdirSync(TMPDIR), own: tmpdir() === TMPDIR, descriptors: descriptors(), names: Object.keys(process.env).sort(),
    given: execFileSync("env").toString().split("\n").map((entry) => entry.split("=")[0]).sort(), extra: process.env.EXTRA,
    listeners: process.eventNames().map(String).sort(), warn: process.emitWarning.name, terminal: Boolean(process.stdin.isTTY),
    globals: Object.getOwnPropertyNames(globalThis).sort(),
    unlike: Object.keys(process.env).filter((name) => process.env[name] !== environment[name]),
  })),

  // worker and fork run this module again, without what was prepared for the first.
  worker: () => new Worker(new URL(import.meta.url), { env: { ...process.env, TASK: "say from a worker" } }),
  fork: () => fork(process.argv[1], { env: { ...process.env, TASK: "say from a fork" } }),

  soil() {
    const found = [];
    const mark = (name, there) => there && found.push(name);
    mark("global", "soiled" in globalThis);
    mark("prototype", "soiled" in {});
    mark("environment", "SOILED" in process.env || execFileSync("env").includes("SOILED"));
    mark("folder", [".", HOME, TMPDIR].some((folder) => readdirSync(folder).length > 0));
    mark("arguments", process.argv.includes("soiled"));
    mark("signal", process.listenerCount("SIGTERM"));
    mark("preloaded state", state.length > 0);
    mark("task of an import", importedWith !== "no task" && importedWith !== process.env.TASK);
    mark("umask", process.umask() === 0o11);
    mark("exit status", process.exitCode);
    globalThis.soiled = Object.prototype.soiled = true;
    process.env.SOILED = "1";
    for (const folder of [".", HOME, TMPDIR]) mkdirSync(folder + "/soiled", 0o500);
    process.chdir("/");
    process.argv.push("soiled");
    process.on("SIGTERM", () => {});
    state.push("soiled");
    process.umask(0o11);
    console.log(JSON.stringify({ found, lot: Math.random() }));
  },

  async ask(times) {
    for (let n = 0; n < Number(times); n++) {
      const response = await fetch(OPENAI_BASE_URL + "/chat/completions", {
        method: "POST",
        headers: { "Content-Type": "application/json", Authorization: "Bearer " + OPENAI_API_KEY },
        body: JSON.stringify({ model: "any", messages: [{ role: "user", content: "go" }] }),
      });
      const said = await response.json();
      if (!response.ok) {
        console.error("refused: " + said.error.code);
        process.exit(1);
      }
      if (n === Number(times) - 1) console.log(said.choices[0].message.content);
    }
  },

  // hang runs until it is stopped: at the first SIGTERM, not at any, or with an answer; or it never comes to heed one.
  hang(how) {
    if (how === "stubborn") process.on("SIGTERM", () => {});
    if (how === "answering") process.on("SIGTERM", () => { console.log("in time"); process.exit(0); });
    if (how !== "busy") return meet();
    const child = 'require("net").connect(process.env.METER.split(":")[1], "127.0.0.1").write("here\\n")';
    spawn(process.execPath, ["-e", child], { stdio: "ignore" });
    for (;;) appendFileSync("busy", "");
  },

  // leave starts a process that would outlive it, and answers.
  leave(how) {
    const child = 'process.on("SIGTERM", () => {}); require("net").connect(process.env.METER.split(":")[1], "127.0.0.1").write("here\\n")';
    spawn(process.execPath, ["-e", child], { detached: how === "session", stdio: "ignore" }).unref();
    console.log("left one");
  },
};

const given = isMainThread && !process.env.TASK?.startsWith("say from") && !process.env.TASK?.startsWith("ignore")
  ? readFileSync(0, "utf8") : process.env.TASK;
const [what] = given.split(" ", 1);
await functions[what](given.slice(what.length + 1));

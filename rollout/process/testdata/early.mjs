// A module that is worth preloading: it remembers where it was imported.

import { spawn } from "node:child_process";

export const state = [];
export const { isTTY } = process.stdin; // which makes it non-blocking
export const importedWith = process.env.TASK ?? "no task";
export const environment = { ...process.env }; // libraries take from it where to send what
if (process.env.EARLY === "loop") for (;;);
if (process.env.EARLY === "wait") await new Promise(() => {});
if (process.env.EARLY === "child") {
  const child = 'require("net").connect(process.env.METER.split(":")[1], "127.0.0.1").write("here\\n")';
  spawn(process.execPath, ["-e", child], { detached: true, stdio: "ignore" }).unref();
}

// Imports modules ahead of an agent's script, and lets that begin when its rollout does:
//
//     node --import file:///…/preload.mjs?MODULE,MODULE… SCRIPT ARGUMENT…
//
// Descriptor 3 is a socket. When the modules are imported, an "r" goes over it. Then come a length of four bytes, big
// endian, and so many bytes: the rollout's environment, separated by zero bytes. When it is in force, a "b" goes back, and
// the script runs, as node runs it without these preparations. From the "r" on until then the process stands still, in a
// call that blocks. The end of the socket ends it.

import { closeSync, readFileSync, readSync, realpathSync, writeSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { constants, runInThisContext } from "node:vm";
import { isMainThread } from "node:worker_threads";

const SOCKET = 3;

// IMPORT_ONLY are the errors of modules that can be imported, but not required.
const IMPORT_ONLY = ["ERR_REQUIRE_ESM", "ERR_REQUIRE_ASYNC_MODULE", "ERR_PACKAGE_PATH_NOT_EXPORTED"];

// importer imports modules as the script would: those that it finds from where it lies, in the form that its own kind of
// module gets.
function importer(script) {
  const load = runInThisContext("(module) => import(module)", {
    filename: script,
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  });
  if (!isCommonJS(script)) return load;
  const require = createRequire(script);
  return (module) => {
    try {
      require(module);
    } catch (error) {
      if (!IMPORT_ONLY.includes(error.code)) throw error;
      return load(module); // as the script has to
    }
  };
}

function isCommonJS(script) {
  const kind = /\.([cm])[jt]s$/.exec(script)?.[1];
  if (kind) return kind === "c";
  for (let folder = dirname(script); ; folder = dirname(folder)) {
    try {
      return JSON.parse(readFileSync(join(folder, "package.json"), "utf8")).type !== "module";
    } catch {
      if (folder === dirname(folder)) return true;
    }
  }
}

// quietly does something without the warning that what it uses is experimental, which is not the agent's.
async function quietly(something) {
  const warn = process.emitWarning;
  process.emitWarning = (warning, kind, ...more) => {
    if (kind !== "ExperimentalWarning") warn.call(process, warning, kind, ...more);
  };
  try {
    return await something();
  } finally {
    process.emitWarning = warn;
  }
}

function receive(length) {
  const data = Buffer.alloc(length);
  for (let n = 0; n < length; ) {
    const more = readSync(SOCKET, data, n, length - n);
    if (more === 0) process.kill(process.pid, "SIGKILL"); // it is needed no more
    n += more;
  }
  return data;
}

function become(environ) {
  for (const name of Object.keys(process.env)) delete process.env[name];
  for (const entry of environ) {
    const at = entry.indexOf("=");
    process.env[entry.slice(0, at)] = entry.slice(at + 1);
  }
}

// A worker of the script starts with this module too.
if (isMainThread) {
  process.execArgv.splice(process.execArgv.indexOf("--import"), 2); // those of processes that the script starts
  const named = createRequire(process.argv[1]).resolve(process.argv[1]);
  const load = await quietly(async () => {
    const load = importer(realpathSync(named));
    await load("node:fs");
    return load;
  });
  for (const module of decodeURIComponent(new URL(import.meta.url).search.slice(1)).split(",")) await load(module);
  writeSync(SOCKET, "r");
  become(receive(receive(4).readUInt32BE()).toString().split("\0"));
  writeSync(SOCKET, "b");
  closeSync(SOCKET);
}

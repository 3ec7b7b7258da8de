#!/usr/bin/env node
// The command nnopt: its program in WebAssembly, with the files of this system.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";

globalThis.fs = fs;
globalThis.path = path;
await import("../wasm_exec.js");

const go = new Go();
go.argv = ["nnopt", ...process.argv.slice(2)];
go.env = { HOME: os.homedir(), TMPDIR: os.tmpdir() }; // there is not room for all of them
go.exit = (code) => process.exit(code);
const { instance } = await WebAssembly.instantiate(fs.readFileSync(new URL("../nnopt.wasm", import.meta.url)), go.importObject);
await go.run(instance);

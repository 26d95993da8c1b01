// SPDX-License-Identifier: MIT OR Apache-2.0
// Prints the digests as WebAssembly computes them: node run.mjs schedlab_wasm.wasm
import { readFile } from "node:fs/promises";

const { instance } = await WebAssembly.instantiate(await readFile(process.argv[2]));
const text = BigInt.asUintN(64, instance.exports.digests_text());
const [address, length] = [Number(text >> 32n), Number(text & 0xffffffffn)];
process.stdout.write(new Uint8Array(instance.exports.memory.buffer, address, length));

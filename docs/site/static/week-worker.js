// Runs cmd/web of Spotter in a Web Worker, so that the page stays responsive. It is served in gzip's
// format, which a page may unpack itself: not every server compresses a program.
'use strict';
importScripts('wasm_exec.js');

async function load() {
  const got = await fetch('week.wasm.gz');
  if (!got.ok) throw new Error(`${got.url}: ${got.status} ${got.statusText}`);
  const data = await got.arrayBuffer();
  let program = new Blob([data]).stream();
  // A server that says "Content-Encoding: gzip" has it unpacked already.
  if (new Uint8Array(data)[0] === 0x1f) program = program.pipeThrough(new DecompressionStream('gzip'));
  const go = new Go();
  const { instance } = await WebAssembly.instantiateStreaming(new Response(program, { headers: { 'content-type': 'application/wasm' } }), go.importObject);
  await go.run(instance);
  throw new Error('the program ended');
}
load().catch(e => postMessage({ kind: 'failed', error: String(e) }));

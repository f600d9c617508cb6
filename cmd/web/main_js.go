// Command web is package week for a Web Worker: built with GOOS=js GOARCH=wasm, it answers the
// messages of a page. docs/site/static/week.js starts it, docs/web.md is its page.
package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall/js"

	"github.com/spotter-dev/spotter/cmd/web/week"
)

// gcPercent is how much the heap may grow between collections, in percent of what is in use. A browser
// collects in the time of the run, and takes longer still to give it more memory: raising this from
// 100 saves time up to some 400, and costs time beyond.
const gcPercent = 400

// memory is how many bytes are requested of the browser at once: about what a week takes. After each
// further request a browser collects its own garbage.
const memory = 96 << 20

func main() {
	runtime.KeepAlive(make([]byte, memory))
	runtime.GC()
	debug.SetGCPercent(gcPercent)
	self := js.Global()
	self.Set("onmessage", js.FuncOf(func(_ js.Value, args []js.Value) any {
		asked := args[0].Get("data")
		go answer(asked) // a callback may not wait
		return nil
	}))
	post("ready", map[string]any{})
	select {}
}

// answer does the comparison that a message describes, and posts how far it is and what comes out.
func answer(asked js.Value) {
	seed, err := strconv.ParseUint(asked.Get("seed").String(), 10, 64)
	if err != nil {
		post("failed", map[string]any{"error": "the seed " + err.Error()})
		return
	}
	choice := week.Choice{Scenario: asked.Get("scenario").String(), Policy: asked.Get("policy").String(), Seed: seed}
	r, err := week.Compare(context.Background(), choice, func(done, total int) {
		post("progress", map[string]any{"done": done, "total": total})
	})
	if err != nil {
		post("failed", map[string]any{"error": err.Error()})
		return
	}
	post("done", map[string]any{"verdict": r.Verdict, "table": r.Table, "text": r.Text, "command": r.Command})
}

// post sends a message of a kind to the page.
func post(kind string, what map[string]any) {
	what["kind"] = kind
	js.Global().Call("postMessage", js.ValueOf(what))
}

// Command engine is the engine inside of the page of playground, for a worker of a browser. It
// answers the questions that a server of "nnopt view" answers, from the same package.
package main

import (
	"bytes"
	"context"
	"runtime"
	"runtime/debug"
	"syscall/js"

	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/standard"
)

// folder has the files that the page brings.
const folder = "/files"

// An answer about a small graph takes some megabytes, most of them garbage. To let it be more than
// what lives before it is collected saves a tenth of the time (51 ms, and 45 ms, from the question to
// the picture, on 2026-11-26); what is large keeps to the limit, half of what a page may use.
const (
	garbage     = 400     // percent of what lives
	memoryLimit = 1 << 30 // bytes
	muchMemory  = 1 << 28 // bytes, to be given back after an answer
)

func main() {
	debug.SetGCPercent(garbage)
	debug.SetMemoryLimit(memoryLimit)
	answer := tool.NewViewService(standard.Program{}.Config(), folder)
	// ask(question, body, answered) calls answered with whether there is an answer, and with its bytes
	// or those of what is wrong, as JSON; before that with null, and with those of a piece of the answer.
	ask := js.FuncOf(func(_ js.Value, args []js.Value) any {
		question, body, answered := args[0].String(), args[1].String(), args[2]
		go func() {
			tell := func(how any, data []byte) {
				bytes := js.Global().Get("Uint8Array").New(len(data))
				js.CopyBytesToJS(bytes, data)
				answered.Invoke(how, bytes)
			}
			data, ok := answer(context.Background(), question, []byte(body), func(piece []byte) { tell(nil, piece) })
			// What has no place among the addresses of WebAssembly, with their 32 bits, is a slice that is too
			// long. What there is no memory for ends the program, and the page says so.
			if !ok && bytes.Contains(data, []byte("makeslice: len out of range")) {
				data = []byte(`{"error": "This takes more memory than the page may use, 2 GB. The program nnopt has no such limit."}`)
			}
			tell(ok, data)
			data = nil
			// What a large question took is not needed for the next one.
			var m runtime.MemStats
			if runtime.ReadMemStats(&m); m.HeapSys-m.HeapReleased > muchMemory {
				debug.FreeOSMemory()
			}
		}()
		return nil
	})
	js.Global().Call("started", ask)
	select {}
}

// Streamserver scores live streams that come over HTTP, many of them in one computation.
//
//	streamserver --frames-per-chunk 21 --frame-subsampling-factor 3 final.mdl
//	curl -NT frames.jsonl http://localhost:8080/stream
//
// A stream is a request: lines of JSON, each with frames, an i-vector, or both. Its response are lines
// with the rows of output, which come while the request is still being sent. GET / tells what
// dimensions the network wants, and GET /metrics what the server does, for Prometheus.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/nnopt/nnopt/exec/decodable"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], func(addr net.Addr) { log.Printf("http://%v", addr) }); err != nil {
		log.Fatal(err)
	}
}

// run serves until ctx ends. It calls ready with the address.
func run(ctx context.Context, args []string, ready func(net.Addr)) error {
	fs := flag.NewFlagSet("streamserver", flag.ContinueOnError)
	listen := fs.String("listen", "localhost:8080", "serve at this `address`")
	chunk := fs.Int("frames-per-chunk", 21, "frames of the output of a chunk")
	subsampling := fs.Int("frame-subsampling-factor", 1, "frames per row of output")
	query := fs.String("query", "+fast_run", "select passes, for example +fast_run +int8")
	most := fs.Int("max-streams", 256, "streams at a time")
	wait := fs.Duration("max-wait", 5*time.Millisecond, "how long a chunk may wait for others")
	idle := fs.Duration("idle", 30*time.Second, "how long a stream may be silent")
	grace := fs.Duration("grace", 30*time.Second, "how long streams may go on after a signal; then they get the rows of what they have sent")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() != 1 {
		return errors.New("usage: streamserver [flags] MODEL")
	}
	q, err := optdb.ParseQuery(*query)
	if err != nil {
		return err
	}
	optimizer, err := passes.Default().Build(q)
	if err != nil {
		return err
	}
	nn, _, err := pipeline.Load(fs.Arg(0), 0)
	if err != nil {
		return err
	}
	if nn, err = nn.For("output"); err != nil { // without the outputs that only training needs
		return err
	}
	streamer, err := decodable.NewStreamer(ctx, nn, decodable.Options{FramesPerChunk: *chunk, FrameSubsampling: *subsampling, Optimizer: optimizer})
	if err != nil {
		return err
	}
	for _, err := range []error{nn.CheckStats(), compile.CheckFuture(nn, *subsampling)} {
		if err != nil {
			log.Printf("%s: warning: %v", fs.Arg(0), err)
		}
	}
	batcher, err := streamer.NewBatcher(ctx, decodable.BatcherOptions{MaxWait: *wait})
	if err != nil {
		return err
	}
	defer batcher.Close()
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", *listen)
	if err != nil {
		return err
	}
	ready(l.Addr())
	return serve(ctx, l, newServer(streamer, batcher, *most, *idle), *grace)
}

// farewell is how long streams that are ended may take to get their last rows.
const farewell = 5 * time.Second

// serve serves until ctx ends. Streams that are open then may go on for a while, and are ended after
// that.
func serve(ctx context.Context, l net.Listener, h *server, grace time.Duration) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		end := time.AfterFunc(grace, h.endStreams)
		defer end.Stop()
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace+farewell)
		defer cancel()
		err := server.Shutdown(patience)
		if err != nil {
			err = errors.Join(fmt.Errorf("streams were cut off: %w", err), server.Close())
		}
		stopped <- err
	}()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}

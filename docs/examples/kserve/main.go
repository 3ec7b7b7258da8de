// Command kserve serves ONNX models over HTTP by the Open Inference Protocol, version 2, which KServe, Triton and others
// speak: health, metadata and inference, with tensors as JSON or binary.
//
//	kserve -addr :8000 encoder=encoder.onnx squeezenet=squeezenet.onnx
//
// SIGINT and SIGTERM end it after the requests that it has accepted.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/nnopt/nnopt/exec/model"
)

func main() {
	addr := flag.String("addr", "localhost:8000", "address to listen at")
	drain := flag.Duration("drain", time.Second, "how long it is not ready, but serves, before it ends")
	var l limits
	flag.Int64Var(&l.body, "max-body", 64<<20, "bytes of a request")
	flag.IntVar(&l.requests, "max-requests", 256, "requests at a time")
	flag.DurationVar(&l.header, "header-timeout", 10*time.Second, "time for a client to send the header of a request")
	flag.DurationVar(&l.read, "read-timeout", 10*time.Second, "time for a client to send a body, or to read an answer")
	flag.DurationVar(&l.compute, "timeout", 30*time.Second, "time for the answer to a request")
	var o model.Options
	flag.IntVar(&o.Threads, "threads", 0, "threads of a run, 0 for one a processor")
	flag.Int64Var(&o.MaxBytes, "max-bytes", 2<<30, "memory of a run")
	var b model.BatcherOptions
	flag.IntVar(&b.MaxRows, "max-rows", 32, "rows that are computed together")
	flag.DurationVar(&b.MaxWait, "max-wait", 0, "how long a request may wait for others")
	flag.Parse()
	s := newServer(l)
	for _, arg := range flag.Args() {
		name, file, ok := strings.Cut(arg, "=")
		if !ok {
			log.Fatalf("%s is not NAME=FILE", arg)
		}
		m, err := o.Open(file)
		if err != nil {
			log.Fatal(err)
		}
		s.add(name, m, b)
	}
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("listening at", listener.Addr())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := s.serve(ctx, listener, *drain); err != nil {
		log.Fatal(err)
	}
}

// serve serves until ctx ends. It then says that it is not ready, and serves for the time drain, so that whoever sends
// requests can learn of it; after that, it takes no more, and ends when those that it took are answered.
func (s *server) serve(ctx context.Context, l net.Listener, drain time.Duration) error {
	h := &http.Server{Handler: s, ReadHeaderTimeout: s.limits.header, WriteTimeout: s.limits.header + 2*s.limits.read + s.limits.compute, IdleTimeout: time.Minute, MaxHeaderBytes: 1 << 16}
	ended := make(chan error, 1)
	go func() {
		<-ctx.Done()
		s.stopping.Store(true)
		time.Sleep(drain)
		ended <- h.Shutdown(context.Background()) // the timeouts bound it
	}()
	if err := h.Serve(l); err != http.ErrServerClosed {
		return err
	}
	err := <-ended
	s.close()
	return err
}

//go:build !js

package tool

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"

	"github.com/nnopt/nnopt/tool/internal/service"
	"github.com/nnopt/nnopt/tool/internal/view"
)

func isAddress(text string) error {
	_, _, err := net.SplitHostPort(text)
	return err
}

// serve serves the page of a subject, which arg names.
func (f *viewFlags) serve(ctx context.Context, c *Console, arg string, s *view.Subject, in view.Input) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", f.listen)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", c.cfg.Name+"-view")
	if err != nil {
		return errors.Join(err, l.Close())
	}
	defer os.RemoveAll(dir)
	if isFile(arg) && arg != "-" {
		in.File, in.Flags = filepath.Base(arg), f.subjectFlags(c)
	}
	server := service.NewServer(newViewEngine(*f.cfg), s, in, dir)
	if in.File != "" {
		server.Allow(in.File, arg)
	}
	if host, _, err := net.SplitHostPort(f.listen); err == nil {
		server.Name(host)
	}
	c.Print("http://%s/\n", l.Addr())
	if err := c.Stdout.Flush(); err != nil {
		return errors.Join(err, l.Close())
	}
	return server.Serve(ctx, l)
}

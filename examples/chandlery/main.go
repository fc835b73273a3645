// Command chandlery is a small ship-chandler's shop: a catalogue, search, carts, orders, payments and
// recommendations, all in memory. It is the application that Seatrial's demo, tests and guides put
// under load. Its flags make it slow, wrong, stalled or silent route by route, and it can write what
// it served as OTLP/JSON and as a combined access log, so that the circle from production traffic to
// a load run and back can be closed. It imports nothing of Seatrial, on purpose: it stands for
// somebody else's application.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "chandlery:", err)
		os.Exit(1)
	}
}

// run reads the flags, serves until ctx ends, then drains and flushes. It announces the address on
// out once it listens.
func run(ctx context.Context, args []string, getenv func(string) string, out, errOut io.Writer) error {
	cfg, err := parse(args, getenv, errOut)
	if err != nil {
		return err
	}
	srv, err := New(cfg)
	if err != nil {
		return err
	}
	lis, err := net.Listen("tcp", cfg.Addr)
	if err != nil {
		return errors.Join(err, srv.Close())
	}
	_, _ = fmt.Fprintf(out, "chandlery listens on http://%s\n", lis.Addr())
	return serve(ctx, lis, srv)
}

// drain is how long requests that are being answered may take after the signal to stop; those that
// take longer are cut.
const drain = 3 * time.Second

// serve answers on lis until ctx ends. Requests that a lock-up holds are let go first, since they
// would hold up the drain.
func serve(ctx context.Context, lis net.Listener, srv *Server) error {
	h := &http.Server{Handler: srv, ReadHeaderTimeout: 30 * time.Second, MaxHeaderBytes: 64 << 10}
	failed := make(chan error, 1)
	go func() { failed <- h.Serve(lis) }()
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		srv.Release()
		grace, cancel := context.WithTimeout(context.Background(), drain)
		defer cancel()
		if err = h.Shutdown(grace); errors.Is(err, context.DeadlineExceeded) {
			err = nil
		}
	}
	return errors.Join(err, h.Close(), srv.Close())
}

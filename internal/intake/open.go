package intake

import (
	"context"

	"seatrial/fault"
	"seatrial/traffic"
	"seatrial/traffic/accesslog"
	"seatrial/traffic/input"
	"seatrial/traffic/loki"
	"seatrial/traffic/otlp"
	"seatrial/traffic/recorded"
)

// opened is a source that is being read.
type opened struct {
	traffic.Source
	kind   string
	server *loki.Reader // of a log server; nil without one
	set    *input.Set   // of files; nil without any

	requests recorded.Source // what is behind a source of Recorded
}

// open opens a source. A replay is told what a profile must not hold.
func open(ctx context.Context, cfg Config, replay bool) (*opened, error) {
	logs := accesslog.Config{Format: cfg.Format, Replay: replay}
	if cfg.Kind == Loki {
		server, err := loki.New(ctx, cfg.Loki)
		if err != nil {
			return nil, err
		}
		return &opened{Source: accesslog.NewFrom(server, logs), kind: Loki, server: server}, nil
	}
	set, err := input.Open(cfg.Paths, cfg.Stdin, cfg.Dir)
	if err != nil {
		return nil, err
	}
	o := &opened{kind: cfg.Kind, set: set}
	if cfg.Replay {
		if err := o.recorded(cfg.Format); err != nil || o.Source != nil {
			return o, err
		}
	}
	saved := loki.Unknown
	if o.kind == "" {
		if o.kind, saved, err = recognise(set, cfg.Format); err != nil {
			o.close()
			return nil, err
		}
	}
	switch {
	case o.kind == OTel:
		o.Source = otlp.NewWith(set, otlp.Config{Replay: replay})
	case saved != loki.Unknown:
		lines, err := loki.Open(set, saved)
		if err != nil {
			o.close()
			return nil, err
		}
		o.Source = accesslog.NewFrom(lines, logs)
	default:
		o.Source = accesslog.New(set, logs)
	}
	return o, nil
}

// recorded takes the input for recorded requests, if that is what it holds.
func (o *opened) recorded(format string) error {
	format, err := recordedFormat(o.set, format)
	if err == nil && format != "" {
		if o.requests, err = recorded.Open(o.set, format); err == nil {
			o.kind, o.Source = Recorded, &events{Source: o.requests}
		}
	}
	if err != nil {
		o.close()
	}
	return err
}

func (o *opened) close() {
	if o.server != nil {
		_ = o.server.Close()
	}
	if o.set != nil {
		_ = o.set.Close()
	}
}

// Err tells what ended the reading of a log server better than the reading of its lines can: its own error,
// or that it has nothing.
func (o *opened) Err() error {
	switch {
	case o.server == nil:
	case o.server.Err() != nil:
		return o.server.Err()
	case o.server.Number() == 0:
		return fault.New(fault.TRF002, "%s has no entry for the query in the range that was asked for", o.server.Input()).
			WithNext("Try the query with logcli, and widen the range.")
	}
	return o.Source.Err()
}

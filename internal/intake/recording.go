package intake

import (
	"context"
	"slices"

	"seatrial/traffic"
	"seatrial/traffic/input"
	"seatrial/traffic/recorded"
)

// Recorded is the kind of a source of requests that were recorded one by one. Only a replay reads it.
const Recorded = "recorded"

// recording is what a replay sends, request by request.
type recording struct {
	recorded.Source
	close func()
}

// Close gives the files back.
func (r *recording) Close() error {
	r.close()
	return nil
}

// Recording opens a source as requests that were recorded one by one. Of access logs and traces that is
// method, path, query and time; only what recorders wrote has headers and bodies.
func Recording(ctx context.Context, cfg Config) (recorded.Source, error) {
	cfg.Replay = true
	o, err := open(ctx, cfg, true)
	if err != nil {
		return nil, err
	}
	if o.requests != nil {
		return &recording{o.requests, o.close}, nil
	}
	return &recording{recorded.FromEvents(o), o.close}, nil
}

// recordedFormat is the format of recorded requests that an input has; empty when it is none.
func recordedFormat(set *input.Set, format string) (string, error) {
	if format != "" {
		if slices.Contains(recorded.Formats(), format) && format != "linkerd" { // that is an access log
			return format, nil
		}
		return "", nil
	}
	head, err := set.Peek(4096)
	if err != nil || len(head) == 0 {
		return "", err
	}
	if f := recorded.Recognise(head); f != "linkerd" {
		return f, nil
	}
	return "", nil
}

// events makes events of recorded requests, to find their routes.
type events struct {
	recorded.Source
	event traffic.Event
}

// Event implements traffic.Source.
func (e *events) Event() *traffic.Event {
	q := e.Request()
	e.event = traffic.Event{UnixNano: q.UnixNano, Method: q.Method, Path: input.Path(q.URL), Duration: -1, RequestSize: int64(len(q.Body)), ResponseSize: -1}
	return &e.event
}

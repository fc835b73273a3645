package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"seatrial/engine/httpload"
	"seatrial/evidence"
	"seatrial/fault"
	"seatrial/internal/crew"
	"seatrial/internal/intake"
	"seatrial/internal/replay"
	"seatrial/judge"
	"seatrial/plan"
	"seatrial/record"
	"seatrial/schedule"
	"seatrial/traffic"
	"seatrial/traffic/recorded"
)

// Replay is what a run needs to send a recording again, request by request.
type Replay struct {
	Source intake.Config // the recording; it is read twice: once for its routes, once to be sent
	Pace   schedule.Pace
	Shown  string // the pace in words
	Loops  int    // how often it is sent; at least 1
	Limit  uint64 // how many requests are sent at most; 0: all
	Spread bool   // spread requests whose times were recorded too coarsely
	Keep   []string
}

// minReplay is what a recording of a single instant takes.
const minReplay = time.Second

// length is how long the recording takes to be sent; it is exact but for what the policy holds back.
func (r *Replay) length(p *traffic.Profile) (time.Duration, error) {
	if p.Window == nil {
		return 0, fault.New(fault.TRF002, "the recording carries no times, so there is no pace to replay it at").
			WithNext("Send its mix at a rate of your own: `seatrial run --rate 10/s`.")
	}
	span := p.Window.End.Sub(p.Window.Start)
	if n := time.Duration(max(1, r.Loops)); n > 1 {
		span = n*span + (n-1)*span/time.Duration(max(1, p.Requests-1))
	}
	due, more := r.Pace.Due(span)
	if !more {
		due = r.Pace.Length()
	}
	return max(minReplay, due+1), nil // the last request is due inside
}

// newFeed prepares what is read while the run sends.
func (x *execution) newFeed(ctx context.Context, slices int) *replay.Feed {
	r, p := x.cfg.Replay, x.prep.plan
	routes := make([]traffic.Route, len(p.Routes))
	for i := range p.Routes {
		routes[i] = traffic.Route{Method: p.Routes[i].Method, Path: p.Routes[i].Path}
	}
	preparing := &preparing{plan: p, index: traffic.NewRouteIndex(routes), keep: lower(r.Keep)}
	return replay.New(replay.Config{Open: func() (recorded.Source, error) { return intake.Recording(ctx, r.Source) }, Loops: r.Loops, Pace: r.Pace, Wanted: r.Source.Wanted,
		Limit: r.Limit, Spread: r.Spread, Seed: p.Seed, Slices: slices, Routes: len(p.Routes), Prepare: preparing.prepare})
}

func lower(names []string) []string {
	out := slices.Clone(names)
	for i := range out {
		out[i] = strings.ToLower(out[i])
	}
	return out
}

// preparing makes requests of records.
type preparing struct {
	plan  *plan.Plan
	index *traffic.RouteIndex
	keep  []string // header fields that are sent although they may tell who somebody is
}

// Why a record is not sent.
const (
	noRoute    = "on no route of the plan"
	noMethod   = "its method cannot be sent"
	unsendable = "its target cannot be sent"
)

func (p *preparing) prepare(method, url string, fields []recorded.Field, _ []byte) (replay.Prepared, string) {
	var out replay.Prepared
	out.Target = plan.Sendable(replay.Target(url))
	path, _, _ := strings.Cut(string(out.Target), "?")
	if d := p.plan.Decide(method, path); !d.Safe {
		return out, d.Why()
	}
	i, ok := p.index.Find(method, []byte(path))
	if !ok {
		return out, noRoute
	}
	out.Route = uint32(i)
	out.Fields = p.fields(fields)
	return out, ""
}

// private are fields of the recorded client that no replay sends unless they are named (RP-3).
var private = []string{"authorization", "cookie", "proxy-authorization", "x-api-key", "x-auth-token", "x-csrf-token", "x-amz-security-token"}

// own are fields that the engine writes, or that belong to the recorded connection.
var own = []string{"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect", "keep-alive", "proxy-connection",
	"user-agent", "traceparent", "accept-encoding"}

// fields are those that are sent again.
func (p *preparing) fields(from []recorded.Field) []httpload.Field {
	var out []httpload.Field
	for _, f := range from {
		name := strings.ToLower(f.Name)
		switch {
		case strings.HasPrefix(name, ":") || slices.Contains(own, name):
		case slices.Contains(private, name) && !slices.Contains(p.keep, name):
		default:
			if _, override := traffic.HasOverrideHeader(map[string]string{f.Name: f.Value}); override {
				continue // the policy has judged the request by its own method
			}
			out = append(out, httpload.Field{Name: f.Name, Value: []byte(f.Value)})
		}
	}
	return out
}

// job is the load of this run, and its feed; that is nil unless the run is a replay.
func (x *execution) job(ctx context.Context) (crew.Job, *replay.Feed) {
	p := x.prep.plan
	job := crew.Job{Engine: p.Engine, Config: x.engineConfig(), Connections: p.ConnectionSchedule, Record: recordConfig(p), Slices: x.slices()}
	if x.cfg.Replay == nil {
		job.Schedule = p.Schedule
		return job, nil
	}
	job.Slices = crew.Slices(job)
	feed := x.newFeed(ctx, job.Slices)
	feed.Start(ctx)
	job.Feed = feed
	return job, feed
}

// fed settles the account of a replay, and says what became of the recording.
func (x *execution) fed(feed *replay.Feed, released []uint64, stopped bool) {
	counts, err := feed.Wait()
	if stopped {
		x.tally.AddUnsent(0, feed.Unreleased(released))
	}
	x.tally.Settle(record.Intended{Routes: feed.Due()})
	r := x.cfg.Replay
	x.run.Replay = &evidence.Replay{Pace: r.Shown, Loops: max(1, r.Loops), Counts: counts, Fidelity: feed.Fidelity()}
	if err != nil {
		x.unread = fault.New(fault.TRF001, "the recording could not be read to its end").Because(err)
		if e, ok := fault.As(err); ok {
			x.unread = e
		}
	}
}

// replayFindings judges the replay itself.
func (x *execution) replayFindings() []judge.Finding {
	r := x.run.Replay
	if r == nil {
		return nil
	}
	f := judge.Finding{Check: "replay", Unit: "share", Measured: r.Fidelity.Distance, Samples: r.Counts.Sent}
	switch {
	case r.Counts.Sent == 0:
		f.Code, f.Reason = string(fault.LOD013), "no recorded request was sent"
	case r.Counts.Starved > 0:
		f.Code = string(fault.GEN001)
		f.Reason = fmt.Sprintf("%d of %d requests were due before their source had given them (source starved)", r.Counts.Starved, r.Counts.Sent)
	default:
		return nil
	}
	return []judge.Finding{f}
}

// Dry is what a replay would send.
type Dry struct {
	Pace   string        `json:"pace"`
	Length time.Duration `json:"length_ns"`
	Counts replay.Counts `json:"counts"`
	Routes []DryRoute    `json:"routes"`
	Step   time.Duration `json:"step_ns"`
	Curve  []uint64      `json:"curve"` // requests by step
}

// DryRoute is how many requests a route would get, or a reason holds back.
type DryRoute struct {
	Name     string `json:"name"`
	Requests uint64 `json:"requests"`
}

// Withheld is what would be held back, by reason, the most first.
func (d *Dry) Withheld() []DryRoute { return byRequests(d.Counts.Withheld) }

// Peak is the highest count of the curve.
func (d *Dry) Peak() uint64 { return slices.Max(append([]uint64{0}, d.Curve...)) }

func byRequests(counts map[string]uint64) []DryRoute {
	var out []DryRoute
	for name, n := range counts {
		out = append(out, DryRoute{name, n})
	}
	slices.SortFunc(out, func(a, b DryRoute) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// drySteps is how many steps the curve of a dry run has at most.
const drySteps = 20

// DryReplay reads a recording as a replay would, and sends nothing.
func DryReplay(ctx context.Context, cfg Config) (*Dry, error) {
	prep, err := prepare(ctx, cfg)
	if err != nil {
		return nil, err
	}
	d := &Dry{Pace: cfg.Replay.Shown, Length: prep.plan.Open.Duration}
	d.Step = max(time.Second, (d.Length / drySteps).Round(time.Second))
	if prep.nothing != nil {
		return nil, prep.nothing
	}
	x := &execution{cfg: cfg, prep: prep}
	feed := x.newFeed(ctx, 1)
	feed.Start(ctx)
	s := feed.Schedule(0)
	for a, ok := s.Next(); ok && ctx.Err() == nil; a, ok = s.Next() {
		if a.Index == schedule.Later {
			time.Sleep(schedule.LaterWait)
			continue
		}
		for i := int(a.Due / d.Step); i >= len(d.Curve); {
			d.Curve = append(d.Curve, 0)
		}
		d.Curve[a.Due/d.Step]++
		feed.Forget(a.Index)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if d.Counts, err = feed.Wait(); err != nil {
		return nil, err
	}
	routes := map[string]uint64{}
	for i, n := range feed.Due() {
		if n > 0 {
			routes[prep.plan.Routes[i].Name] = n
		}
	}
	d.Routes = byRequests(routes)
	return d, nil
}

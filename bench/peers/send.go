package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/pprof"
	"sync"
	"time"

	"seatrial/engine"
	"seatrial/engine/httpload"
	"seatrial/internal/consent"
	"seatrial/manifest"
	"seatrial/record"
	"seatrial/schedule"
)

// sendCommand is the first argument of the child process that is Seatrial's entry in a table.
const sendCommand = "send"

// warmup is the part of an open loop that is sent first and not judged, as in every run.
const warmup = 500 * time.Millisecond

// noLimit is a max_rate that holds nothing back.
const noLimit = 1_000_000

// root asks for / each time, for so many routes in turn.
type root struct{ routes uint64 }

// At implements httpload.Requests.
func (q root) At(i uint64, r *httpload.Request) {
	r.Route, r.Method, r.Target = uint32(i%q.routes), "GET", append(r.Target[:0], '/')
}

// burst is due at once as a whole: with a bound on connections it is a closed loop.
type burst struct{ next, n uint64 }

// Next implements schedule.Schedule.
func (b *burst) Next() (schedule.Arrival, bool) {
	b.next++
	return schedule.Arrival{Index: b.next - 1}, b.next <= b.n
}

type sending struct {
	url, engine string
	n           uint64
	connections int
	rate        float64
	length      time.Duration
	loops       int
	precise     bool
	http        string
	streams     int
	fresh       float64
	resume      float64
	routes      int
	times       uint64
	took        time.Duration // from the first due time to the last answer
}

// send is the child: the engine with its whole recorder, and nothing else of the program.
func send(ctx context.Context, args []string, out io.Writer) error {
	var s sending
	flags := flag.NewFlagSet(sendCommand, flag.ContinueOnError)
	flags.StringVar(&s.url, "url", "", "where to")
	flags.StringVar(&s.engine, "engine", httpload.Auto, "auto, loop or portable")
	flags.Uint64Var(&s.n, "n", 0, "requests of a closed loop")
	flags.IntVar(&s.connections, "c", 64, "connections")
	flags.Float64Var(&s.rate, "rate", 0, "requests a second of an open loop")
	flags.DurationVar(&s.length, "length", 2*time.Second, "of an open loop")
	flags.IntVar(&s.loops, "loops", 1, "slices side by side")
	flags.BoolVar(&s.precise, "precise", false, "stay awake before due times")
	flags.StringVar(&s.http, "http", string(httpload.HTTP1), "version of HTTP")
	flags.IntVar(&s.streams, "streams", 0, "requests on one connection at once")
	flags.Float64Var(&s.fresh, "fresh", 0, "share of requests with a connection of their own")
	flags.IntVar(&s.routes, "routes", 1, "routes that are recorded")
	flags.Uint64Var(&s.times, "times", 1, "how many times as much is sent")
	flags.Float64Var(&s.resume, "resume", 0, "share of handshakes that resume a session")
	profile := flags.String("profile", "", "file for a CPU profile")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	s.n *= s.times
	s.length *= time.Duration(s.times)
	target, _, err := consent.Admit(ctx, "peers", manifest.Target{URL: s.url, MaxRate: noLimit}, net.DefaultResolver)
	if err != nil {
		return err
	}
	tally, err := s.run(ctx, target)
	if err != nil {
		return err
	}
	answered, ended, errs := tally.Warmup.Answered, tally.Warmup.Ended(), uint64(0)
	delay := record.NewHistogram()
	for i := range tally.Routes {
		r := &tally.Routes[i]
		answered, ended, errs = answered+r.Outcomes[record.Answered], ended+r.Account.Ended(), errs+r.Errors()
		delay.Merge(r.SendDelay)
	}
	if answered != ended || errs > 0 {
		return fmt.Errorf("%d of %d were answered, %d errors", answered, ended, errs)
	}
	_, err = fmt.Fprintf(out, "answered %d in %.6f s send-delay-us %.1f %.1f %.1f\n", answered, s.took.Seconds(), micros(delay.Quantile(50, 100)),
		micros(delay.Quantile(99, 100)), micros(delay.Quantile(999, 1000)))
	return err
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func (s *sending) run(ctx context.Context, target engine.Target) (*record.Tally, error) {
	e, err := httpload.Choose(s.engine)
	if err != nil {
		return nil, err
	}
	rc := record.Config{Routes: s.routes, End: s.length + time.Hour}
	if s.rate > 0 {
		rc.Warmup = warmup
	}
	epoch := time.Now().Add(10 * time.Millisecond)
	shards := make([]*record.Shard, s.loops)
	errs := make([]error, s.loops)
	var wg sync.WaitGroup
	for k := range s.loops {
		var from schedule.Schedule = &burst{n: s.n / uint64(s.loops)}
		if s.rate > 0 {
			whole, err := schedule.New(schedule.Open{Kind: schedule.Poisson, Rate: s.rate, Duration: s.length, Seed: 1})
			if err != nil {
				return nil, err
			}
			from = schedule.Shard(whole, k, s.loops)
		}
		shards[k] = record.NewShard(rc)
		wg.Go(func() {
			_, errs[k] = e.Run(ctx, httpload.Config{Target: target, Schedule: from, Requests: root{uint64(s.routes)}, Recorder: shards[k], UserAgent: "seatrial/peers",
				HTTP: httpload.Version(s.http), Connections: httpload.Connections{Streams: s.streams, Fresh: s.fresh, Resume: s.resume}, Precise: s.precise, TLS: httpload.TLS{Insecure: true}, Epoch: epoch, Limits: engine.Limits{MaxConnections: s.connections / s.loops, Timeout: time.Hour}})
		})
	}
	wg.Wait()
	s.took = time.Since(epoch)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	tally := record.NewTally(rc)
	for _, sh := range shards {
		sh.MergeInto(tally)
	}
	return tally, nil
}

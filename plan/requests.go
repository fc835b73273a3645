package plan

import (
	"crypto/sha256"
	"encoding/binary"
	"runtime"
	"strconv"
	"sync"
	"time"

	"seatrial/engine/httpload"
	"seatrial/schedule"
	"seatrial/traffic"
)

// requests gives request number i as a pure function of (seed, plan, i).
type requests struct {
	mix    *traffic.Mix
	routes []sender
}

// sender makes the requests of one route.
type sender struct {
	method   string
	paths    []string
	pick     *traffic.Mix // over paths; nil for a single one
	template *traffic.Template
	holes    []hole
	cargo    cargo
}

// hole makes the value of one placeholder.
type hole struct {
	pool *traffic.Pool
	seed uint64
}

func newRequests(seed uint64, sent []candidate, carried map[string]*cargo, firstEach bool) *requests {
	q := &requests{}
	weights := make([]float64, len(sent))
	for i, s := range sent {
		weights[i] = s.weight
		from := newSender(seed, s)
		if g := carried[s.name()]; g != nil {
			from.cargo = *g
		}
		q.routes = append(q.routes, from)
	}
	q.mix = traffic.NewMix(weights, derive(seed, "mix", ""), firstEach)
	return q
}

func newSender(seed uint64, s candidate) sender {
	out := sender{method: s.method, paths: s.paths, template: s.template}
	if len(s.paths) > 1 {
		out.pick = traffic.NewMix(s.weights, derive(seed, s.name(), "path"), false)
	}
	for _, p := range s.pools {
		out.holes = append(out.holes, hole{pool: p.values, seed: derive(seed, s.name(), p.key)})
	}
	return out
}

// derive gives an independent seed for each purpose, so that the route of a request tells nothing
// about its values, and so that a route keeps its values when others come or go.
func derive(seed uint64, route, purpose string) uint64 {
	h := sha256.New()
	hashPart(h, strconv.FormatUint(seed, 10))
	hashPart(h, route)
	hashPart(h, purpose)
	return binary.LittleEndian.Uint64(h.Sum(nil))
}

// At implements httpload.Requests. It does not allocate once r.Target has grown.
func (p *Plan) At(i uint64, r *httpload.Request) {
	k := p.requests.mix.Route(i)
	s := &p.requests.routes[k]
	r.Route, r.Method, r.Refuse = k, s.method, false
	r.Fields, r.Body, r.Expect = s.cargo.fields, s.cargo.body, s.cargo.expect
	switch {
	case s.pick != nil:
		r.Target = append(r.Target[:0], s.paths[s.pick.Route(i)]...)
	case len(s.paths) > 0:
		r.Target = append(r.Target[:0], s.paths[0]...)
	default:
		r.Target = s.template.Append(r.Target[:0], func(dst []byte, n int) []byte {
			return s.holes[n].pool.AppendAt(dst, s.holes[n].seed, i, 0, n)
		})
	}
}

// Schedule gives the arrivals from the first on; each call gives an independent one.
func (p *Plan) Schedule() schedule.Schedule {
	s, err := schedule.New(p.Open)
	if err != nil {
		panic("plan: a compiled schedule is refused: " + err.Error()) // Compile has validated it
	}
	return s
}

// Arrivals is the number of arrivals of the whole schedule, warm-up included.
func (p *Plan) Arrivals() uint64 { return p.arrivals }

// Route is the route of request i, as At gives it.
func (p *Plan) Route(i uint64) uint32 { return p.requests.mix.Route(i) }

// digested is how many arrivals the digest of a schedule covers: a quarter of a second's work.
const digested = 1_000_000

// ScheduleDigest is a SHA-256 over (due time, route, target) of the first million arrivals, so that a
// report can show that two runs sent the same sequence. It is empty for a recording.
func (p *Plan) ScheduleDigest() string {
	if p.Recorded {
		return ""
	}
	d, s := schedule.NewDigest(), p.Schedule()
	var r httpload.Request
	for a, ok := s.Next(); ok && a.Index < digested; a, ok = s.Next() {
		p.At(a.Index, &r)
		d.Add(a, r.Route, r.Target)
	}
	return d.Sum()
}

// Due counts what the schedule intends: the arrivals of the warm-up, and those of the judged part by
// route. The account of a finished run must equal it.
func (p *Plan) Due() (warmup uint64, judged []uint64) { return p.Unreleased([]uint64{0}) }

// Unreleased counts the arrivals that the slices of a run did not release, because it was stopped: slice
// k of len(released) has released its first released[k] arrivals.
func (p *Plan) Unreleased(released []uint64) (warmup uint64, judged []uint64) {
	judged = make([]uint64, len(p.Routes))
	first, n := p.firstJudged(), uint64(len(released))
	for k, done := range released {
		next := uint64(k) + n*done
		if next < first {
			skip := (first - next + n - 1) / n
			warmup += skip
			next += n * skip
		}
		p.countRoutes(next, n, judged)
	}
	return warmup, judged
}

// firstJudged is the index of the first arrival after the warm-up.
func (p *Plan) firstJudged() uint64 {
	s := p.Schedule()
	for a, ok := s.Next(); ok; a, ok = s.Next() {
		if a.Due >= p.Warmup {
			return a.Index
		}
	}
	return p.arrivals
}

// countRoutes adds the arrivals from, from+step and so on to the end by route. Routes need no due times,
// so that every core can count a part.
func (p *Plan) countRoutes(from, step uint64, into []uint64) {
	if from >= p.arrivals {
		return
	}
	parts := uint64(runtime.GOMAXPROCS(0))
	total := (p.arrivals-from-1)/step + 1
	counts := make([][]uint64, parts)
	var wg sync.WaitGroup
	for k := range parts {
		wg.Go(func() {
			sum := make([]uint64, len(into))
			for i := total * k / parts; i < total*(k+1)/parts; i++ {
				sum[p.Route(from+i*step)]++
			}
			counts[k] = sum
		})
	}
	wg.Wait()
	for _, sum := range counts {
		for i, n := range sum {
			into[i] += n
		}
	}
}

// End is the last moment at which a request can be due, plus its time-out.
func (p *Plan) End() time.Duration { return p.Open.Duration + p.Limits.Timeout }

package record

import (
	"fmt"
	"reflect"
	"time"

	"seatrial/fault"
)

// Tally is the merged result of all shards.
type Tally struct {
	Config Config
	Warmup Account      // arrivals of the warm-up, all routes
	Judged Account      // arrivals after it, all routes; equals the sum over Routes
	Routes []RouteTally // judged arrivals only
	Series []Second     // by second of the due time (Config.Step), warm-up included

	// Stray counts samples of a route or an outcome that does not exist: a defect, and Check fails.
	Stray uint64

	step   time.Duration // Config.Step()
	defect string        // why Check must fail, beside the sums
}

// RouteTally is what one route's judged arrivals came to. Which of them enter the times is decided by
// Outcome.Timed.
type RouteTally struct {
	Account   Account
	Outcomes  [NumOutcomes]uint64
	Status    [StatusClasses]uint64 // answered, by status class
	Response  *Histogram            // response time of every timed arrival, failures and time-outs included
	Service   *Histogram            // service time of those of them that were written
	SendDelay *Histogram            // of every arrival that was written, abandoned ones included
	Net       *Histogram            // response time less send delay, of Response's samples, for EG-7
	FirstByte *Histogram            // first byte of the response less Sent, where there was one
	Wait      *Histogram            // wait for a connection, of Response's samples
	BytesIn   uint64
	BytesOut  uint64
	Under     []uint64 // by Config.Limits: valid answers at or under the limit, unrounded ns; Response has more samples, those that failed
	NetUnder  []uint64 // the same, response time less send delay
}

// Second is one second of the run, by due time.
type Second struct {
	Due       uint64 // offered
	Answered  uint64 // achieved
	Valid     uint64 // answered, and below 500
	Errors    uint64 // 5xx and failures and time-outs
	ByOutcome [NumOutcomes]uint64
	Status    [StatusClasses]uint64
	Response  *Histogram // coarse (2 significant digits) to bound memory; nil when there is none
	DelayMax  time.Duration
}

// NewTally makes an empty tally. Its memory does not grow with the number of samples.
func NewTally(c Config) *Tally {
	t := &Tally{Config: c, step: c.Step(), Routes: make([]RouteTally, c.Routes)}
	t.Series = make([]Second, 0, bin(c.End, t.step)+1)
	for i := range t.Routes {
		r := &t.Routes[i]
		for _, h := range r.histograms() {
			*h = NewHistogram()
		}
		n := len(c.limits(i))
		r.Under, r.NetUnder = make([]uint64, n), make([]uint64, n)
	}
	return t
}

func (r *RouteTally) histograms() [6]**Histogram {
	return [...]**Histogram{&r.Response, &r.Service, &r.SendDelay, &r.Net, &r.FirstByte, &r.Wait}
}

// Responses is what counts for the error rate: answers, failures, time-outs, and arrivals that got no
// connection within their time-out.
func (r *RouteTally) Responses() uint64 { return sumOutcomes(&r.Outcomes, Outcome.Response) }

// Errors are those of Responses that are errors: all but the answers, and answers of 500 or above.
func (r *RouteTally) Errors() uint64 { return sumOutcomes(&r.Outcomes, Outcome.Error) + r.Status[5] }

// ClientErrors are the answers of 400 to 499.
func (r *RouteTally) ClientErrors() uint64 { return r.Status[4] }

func sumOutcomes(by *[NumOutcomes]uint64, in func(Outcome) bool) uint64 {
	var n uint64
	for o, k := range by {
		if in(Outcome(o)) {
			n += k
		}
	}
	return n
}

// add counts one sample.
func (t *Tally) add(s *Sample) {
	if s.Outcome >= NumOutcomes || int(s.Route) >= len(t.Routes) {
		t.Stray++
		return
	}
	t.second(s.Due).add(s)
	if s.Due < t.Config.Warmup {
		t.Warmup.count(s.Outcome, 1)
		return
	}
	t.Judged.count(s.Outcome, 1)
	t.Routes[s.Route].add(s, t.Config.limits(int(s.Route)))
}

func (r *RouteTally) add(s *Sample, limits []time.Duration) {
	r.Account.count(s.Outcome, 1)
	r.Outcomes[s.Outcome]++
	r.BytesIn += s.BytesIn
	r.BytesOut += s.BytesOut
	written := s.Written()
	delay := time.Duration(0)
	if written {
		delay = s.SendDelay()
		r.SendDelay.Record(delay)
	}
	if s.Outcome == Answered {
		r.Status[s.statusClass()]++
	}
	if !s.Outcome.Timed() {
		return
	}
	response := s.Response()
	net := max(0, response-delay)
	r.Response.Record(response)
	r.Net.Record(net)
	r.Wait.Record(s.Wait)
	if written {
		r.Service.Record(s.Service())
		if s.FirstByte >= s.Sent && (s.FirstByte > 0 || s.Outcome == Answered) {
			r.FirstByte.Record(s.FirstByte - s.Sent)
		}
	}
	if s.Error() {
		return // a request without a valid answer is over every limit, however soon it failed
	}
	for i, l := range limits {
		if response <= l {
			r.Under[i]++
		}
		if net <= l {
			r.NetUnder[i]++
		}
	}
}

// second gives the element of the series for a due time.
func (t *Tally) second(due time.Duration) *Second {
	i := bin(due, t.step)
	for i >= len(t.Series) {
		t.Series = append(t.Series, Second{})
	}
	return &t.Series[i]
}

func (x *Second) add(s *Sample) {
	x.Due++
	x.ByOutcome[s.Outcome]++
	if s.Outcome == Answered {
		x.Answered++
		x.Status[s.statusClass()]++
		if !s.Error() {
			x.Valid++
		}
	}
	if s.Error() {
		x.Errors++
	}
	if s.Written() {
		x.DelayMax = max(x.DelayMax, s.SendDelay())
	}
	if s.Outcome.Timed() {
		if x.Response == nil {
			x.Response = NewCoarse()
		}
		x.Response.Record(s.Response())
	}
}

// Merge adds everything that o counted; o stays as it is. It is associative and commutative. When the
// two were shaped by different configurations nothing is added and Check fails from then on.
func (t *Tally) Merge(o *Tally) {
	if o == nil {
		return
	}
	if t.defect == "" {
		t.defect = o.defect
	}
	if !t.Config.same(o.Config) || len(t.Routes) != len(o.Routes) {
		t.defect = "tallies of different configurations were merged"
		return
	}
	t.Warmup.merge(o.Warmup)
	t.Judged.merge(o.Judged)
	t.Stray += o.Stray
	for i := range o.Routes {
		t.Routes[i].merge(&o.Routes[i])
	}
	for i := range o.Series {
		t.second(time.Duration(i) * t.step).merge(&o.Series[i])
	}
}

func (r *RouteTally) merge(o *RouteTally) {
	r.Account.merge(o.Account)
	addAll(r.Outcomes[:], o.Outcomes[:])
	addAll(r.Status[:], o.Status[:])
	addAll(r.Under, o.Under)
	addAll(r.NetUnder, o.NetUnder)
	r.BytesIn += o.BytesIn
	r.BytesOut += o.BytesOut
	from := o.histograms()
	for i, h := range r.histograms() {
		(*h).Merge(*from[i])
	}
}

func (x *Second) merge(o *Second) {
	x.Due += o.Due
	x.Answered += o.Answered
	x.Valid += o.Valid
	x.Errors += o.Errors
	addAll(x.ByOutcome[:], o.ByOutcome[:])
	addAll(x.Status[:], o.Status[:])
	x.DelayMax = max(x.DelayMax, o.DelayMax)
	if o.Response != nil {
		if x.Response == nil {
			x.Response = NewCoarse()
		}
		x.Response.Merge(o.Response)
	}
}

func addAll(to, from []uint64) {
	for i, v := range from {
		to[i] += v
	}
}

// AddUnsent counts arrivals that a stop left unreleased, of the warm-up and by route. They have no
// samples, and the series reaches until the stop.
func (t *Tally) AddUnsent(warmup uint64, routes []uint64) {
	t.Warmup.count(UnsentStop, warmup)
	for i, n := range routes {
		t.Judged.count(UnsentStop, n)
		t.Routes[i].Account.count(UnsentStop, n)
		t.Routes[i].Outcomes[UnsentStop] += n
	}
}

// Settle holds the tally against what the schedule intended: an arrival that no shard recorded
// becomes Lost. Call it once, after the last Merge and before Check.
func (t *Tally) Settle(in Intended) {
	if len(in.Routes) != len(t.Routes) {
		t.defect = fmt.Sprintf("the schedule was counted for %d routes, the run has %d", len(in.Routes), len(t.Routes))
		return
	}
	t.Warmup.settle(in.Warmup)
	var judged uint64
	for i, due := range in.Routes {
		r := &t.Routes[i]
		before := r.Account.Lost
		r.Account.settle(due)
		r.Outcomes[Lost] += r.Account.Lost - before
		judged += due
	}
	t.Judged.settle(judged)
	for i, due := range in.Series {
		x := t.second(time.Duration(i) * t.step)
		if due > x.Due {
			x.ByOutcome[Lost] += due - x.Due
		}
		x.Due = due
	}
}

// Check asserts SA-12: every account balances, per route and in total, the total is the sum of the
// routes, and the outcomes and histograms tell the same story as the accounts. Its error is GEN-002
// and means that there is no verdict.
func (t *Tally) Check() error {
	if t.defect != "" {
		return fault.New(fault.GEN002, "the tally cannot be relied on: %s", t.defect)
	}
	if t.Stray > 0 {
		return fault.New(fault.GEN002, "%d samples named a route or an outcome that does not exist", t.Stray)
	}
	if err := t.Warmup.Balanced("warm-up"); err != nil {
		return err
	}
	var sum Account
	for i := range t.Routes {
		if err := t.Routes[i].check(fmt.Sprintf("route %d", i)); err != nil {
			return err
		}
		sum.merge(t.Routes[i].Account)
	}
	if err := t.Judged.Balanced("all routes"); err != nil {
		return err
	}
	if sum != t.Judged {
		return fault.New(fault.GEN002, "all routes: the routes sum up to %+v, the total says %+v", sum, t.Judged)
	}
	return nil
}

func (r *RouteTally) check(who string) error {
	if err := r.Account.Balanced(who); err != nil {
		return err
	}
	var by Account
	for o, n := range r.Outcomes {
		by.count(Outcome(o), n)
	}
	if by != r.Account {
		return fault.New(fault.GEN002, "%s: the outcomes make %+v, the account says %+v", who, by, r.Account)
	}
	var status uint64
	for _, n := range r.Status {
		status += n
	}
	if status != r.Account.Answered {
		return fault.New(fault.GEN002, "%s: %d answers have a status, %d were counted", who, status, r.Account.Answered)
	}
	if timed := sumOutcomes(&r.Outcomes, Outcome.Timed); timed != r.Response.Count() {
		return fault.New(fault.GEN002, "%s: %d arrivals have a response time, the histogram holds %d", who, timed, r.Response.Count())
	}
	return nil
}

// Bytes is the memory that the tally's histograms and series hold.
func (t *Tally) Bytes() int {
	n := cap(t.Series) * int(reflect.TypeFor[Second]().Size())
	for i := range t.Routes {
		for _, h := range t.Routes[i].histograms() {
			n += (*h).Bytes()
		}
	}
	for i := range t.Series {
		if h := t.Series[i].Response; h != nil {
			n += h.Bytes()
		}
	}
	return n
}

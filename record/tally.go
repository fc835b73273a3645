package record

import "time"

// Config shapes shards and tallies; all shards of a run share one.
type Config struct {
	Routes int               // number of routes
	Warmup time.Duration     // arrivals due before it are counted apart and not judged
	End    time.Duration     // the last due time plus the drain; bounds the per-second series
	Limits [][]time.Duration // per route, exact counters of response times at or under each; sorted
}

// Account is where each intended arrival ended. Due = Answered + Failed + TimedOut + Abandoned +
// Unsent + Lost, and Sent = the first four, or there is no verdict (SA-12).
type Account struct {
	Due       uint64 `json:"due"`
	Answered  uint64 `json:"answered"`
	Failed    uint64 `json:"failed"`
	TimedOut  uint64 `json:"timed_out"`
	Abandoned uint64 `json:"abandoned"`
	Unsent    uint64 `json:"unsent"`
	Lost      uint64 `json:"lost"`
}

// Tally is the merged result of all shards.
type Tally struct {
	Config Config
	Warmup Account      // arrivals of the warm-up, all routes
	Judged Account      // arrivals after it, all routes; equals the sum over Routes
	Routes []RouteTally // judged arrivals only
	Series []Second     // by second of the due time, warm-up included
}

// RouteTally is what one route's judged arrivals came to.
type RouteTally struct {
	Account   Account
	Outcomes  [NumOutcomes]uint64
	Status    [6]uint64  // answered, by status class; index 0: outside 100..599
	Response  *Histogram // response time of every arrival that was sent and ended, failures included
	Service   *Histogram
	SendDelay *Histogram
	Net       *Histogram // response time less send delay, for EG-7
	FirstByte *Histogram // first byte of the response less Sent
	Wait      *Histogram // wait for a connection
	BytesIn   uint64
	BytesOut  uint64
	Under     []uint64 // by Config.Limits: response times at or under the limit, unrounded ns, of Response's samples
	NetUnder  []uint64 // the same, response time less send delay
}

// Second is one second of the run, by due time.
type Second struct {
	Due       uint64 // offered
	Answered  uint64 // achieved
	Valid     uint64 // answered, and below 500
	Errors    uint64 // 5xx and failures and time-outs
	ByOutcome [NumOutcomes]uint64
	Status    [6]uint64
	Response  *Histogram // coarse (2 significant digits) to bound memory
	DelayMax  time.Duration
}

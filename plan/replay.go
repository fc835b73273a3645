package plan

import (
	"seatrial/schedule"
	"seatrial/traffic"
)

// FromRecording is the process of a plan whose due times come from a recording.
const FromRecording schedule.Kind = "recorded"

// recordedRates describes the schedule of a replay, which the recording gives request by request. It has
// no warm-up: the first request is as much of the recording as the last.
func (c *compiler) recordedRates() {
	p := c.plan
	p.Recorded, p.Warmup, p.Duration = true, 0, c.in.Replay
	p.Mix.Scale = 1
	p.Open = schedule.Open{Kind: FromRecording, Seed: p.Seed, Rate: float64(c.in.Source.Requests) / c.in.Replay.Seconds(), Duration: c.in.Replay}
}

// considerRecorded takes a route of which some request may be sent. Each is decided by itself when its
// turn comes: see Decide.
func (c *compiler) considerRecorded(r *traffic.Route) {
	for _, m := range c.methods(r.Method) {
		if !c.policy.Possible(m, r.Path) {
			c.remove(r, c.decideTemplate(r.Method, r.Path))
			return
		}
	}
	c.sent = append(c.sent, candidate{method: r.Method, path: r.Path, weight: r.Weight, values: values{by: "recording"}})
}

// Decide judges one concrete request, by its method and its path as it is written, query aside: under every
// method that a header of the run would make of it.
func (p *Plan) Decide(method, path string) traffic.Decision {
	d := p.policy.Decide(method, path)
	for _, m := range p.overrides {
		if !d.Safe {
			break
		}
		d = p.policy.Decide(m, path)
	}
	return d
}

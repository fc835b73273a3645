package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"seatrial/engine"
	"seatrial/judge"
	"seatrial/schedule"
)

// digest covers everything that decides what is sent and what is judged, pass lines included, and
// no value of a secret. Two plans with equal digests send the same and are judged alike.
func (p *Plan) digest() string {
	type header struct{ Name, Value string }
	all := struct {
		Format   int
		Seed     uint64
		Open     schedule.Open
		Warmup   time.Duration
		Duration time.Duration
		Smoke    bool
		Routes   []Route
		Checks   []judge.Check
		Limits   engine.Limits
		Headers  []header
		Host     string
		Trace    float64
		Abort    Abort
		Carriage string
	}{2, p.Seed, p.Open, p.Warmup, p.Duration, p.Smoke, p.Routes, p.Checks, p.Limits, nil, p.Host, p.Trace, p.Abort, p.carriage}
	for i, h := range p.Headers {
		value := h.Value
		if p.hidden[i] {
			value = ""
		}
		all.Headers = append(all.Headers, header{h.Name, value})
	}
	b, err := json.Marshal(all)
	if err != nil {
		panic("plan: " + err.Error()) // only finite numbers and text stand in a plan
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

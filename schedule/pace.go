package schedule

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Pace says how fast recorded time passes in a replay: at one speed to the end, or in phases, after the
// last of which the replay is over. The zero value is the recorded pace to the end.
type Pace struct {
	phases []phase
	speed  float64 // without phases; 0: 1
}

// phase is one stretch of a replay at one speed.
type phase struct {
	length time.Duration // as it passes in the replay
	speed  float64
	began  time.Duration // in the replay
	from   time.Duration // in the recording
}

// The bounds of a speed. At the lowest, a recorded second takes a day.
const (
	minSpeed = 1e-5
	maxSpeed = 1e6
)

// ParsePace reads a speed ("1", "2.5"), or phases of the form "10s@1 5m@5 1h@10": each for so long at so many
// times the recorded speed.
func ParsePace(text string) (Pace, error) {
	fields := strings.Fields(text)
	if len(fields) == 1 && !strings.Contains(fields[0], "@") {
		v, err := parseSpeed(fields[0])
		return Pace{speed: v}, err
	}
	if len(fields) == 0 {
		return Pace{}, fmt.Errorf("schedule: a pace is a speed such as 2, or phases such as %q", "10s@1 5m@5")
	}
	var p Pace
	var began, from time.Duration
	for _, f := range fields {
		length, speed, ok := strings.Cut(f, "@")
		d, err := time.ParseDuration(length)
		if !ok || err != nil || d <= 0 {
			return Pace{}, fmt.Errorf("schedule: the phase %q is not of the form 10s@1", f)
		}
		v, err := parseSpeed(speed)
		if err != nil {
			return Pace{}, err
		}
		p.phases = append(p.phases, phase{length: d, speed: v, began: began, from: from})
		if began += d; began > MaxDuration {
			return Pace{}, fmt.Errorf("schedule: the phases take longer than %s", MaxDuration)
		}
		if from = p.phases[len(p.phases)-1].until(); from >= MaxDuration {
			from = math.MaxInt64 // no recording is that long
		}
	}
	return p, nil
}

func parseSpeed(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= minSpeed && v <= maxSpeed) {
		return 0, fmt.Errorf("schedule: the speed %q is not a number from %g to %g", text, minSpeed, maxSpeed)
	}
	return v, nil
}

// until is the recorded moment at which the phase ends.
func (p *phase) until() time.Duration {
	d := float64(float64(p.length) * p.speed)
	if d >= float64(MaxDuration) {
		return MaxDuration
	}
	return p.from + time.Duration(d)
}

// due is when a recorded moment of the phase comes.
func (p *phase) due(recorded time.Duration) time.Duration {
	d := float64(float64(recorded-p.from) / p.speed)
	if d >= float64(MaxDuration) {
		return p.began + MaxDuration
	}
	return p.began + time.Duration(d)
}

// Due gives when a request is due that was recorded at an offset from the first one; false when the last
// phase is over by then. It never falls as the offset grows. A negative offset counts as 0.
func (p Pace) Due(recorded time.Duration) (time.Duration, bool) {
	recorded = max(0, recorded)
	if len(p.phases) == 0 {
		one := phase{speed: p.speed}
		if p.speed == 0 {
			one.speed = 1
		}
		return one.due(recorded), true
	}
	for i := range p.phases {
		x := &p.phases[i]
		if i+1 < len(p.phases) && recorded >= p.phases[i+1].from {
			continue
		}
		d := x.due(recorded)
		return min(d, x.began+x.length), d < x.began+x.length
	}
	return 0, false
}

// Length is how long the phases take together; 0 without any, when the end of the recording is the end.
func (p Pace) Length() time.Duration {
	if n := len(p.phases); n > 0 {
		return p.phases[n-1].began + p.phases[n-1].length
	}
	return 0
}

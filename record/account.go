package record

import (
	"math/bits"

	"seatrial/fault"
)

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

// Sent is what was taken to the target.
func (a Account) Sent() uint64 { return a.Answered + a.Failed + a.TimedOut + a.Abandoned }

// Ended is the sum of all ways in which an arrival can end; it must equal Due.
func (a Account) Ended() uint64 { return a.Sent() + a.Unsent + a.Lost }

// Balanced gives GEN-002 with both sides of the sum when the account does not balance. who names the
// route, or whose account it is.
func (a Account) Balanced(who string) error {
	if a.Due == a.Ended() {
		return nil
	}
	return fault.New(fault.GEN002, "%s: %d arrivals were due, but %d answered + %d failed + %d timed out + %d abandoned + %d unsent + %d lost make %d",
		who, a.Due, a.Answered, a.Failed, a.TimedOut, a.Abandoned, a.Unsent, a.Lost, a.Ended())
}

// count adds n arrivals of outcome o; what is no outcome is lost.
func (a *Account) count(o Outcome, n uint64) {
	a.Due += n
	switch {
	case o == Answered:
		a.Answered += n
	case o.Failed():
		a.Failed += n
	case o.TimedOut():
		a.TimedOut += n
	case o == Abandoned:
		a.Abandoned += n
	case o.Unsent():
		a.Unsent += n
	default:
		a.Lost += n
	}
}

// settle sets what was due; what the parts leave open is lost. When the parts already exceed it, the
// account stays out of balance for Balanced to tell.
func (a *Account) settle(due uint64) {
	if ended := a.Ended(); due > ended {
		a.Lost += due - ended
	}
	a.Due = due
}

func (a *Account) merge(b Account) {
	a.Due += b.Due
	a.Answered += b.Answered
	a.Failed += b.Failed
	a.TimedOut += b.TimedOut
	a.Abandoned += b.Abandoned
	a.Unsent += b.Unsent
	a.Lost += b.Lost
}

// AtMost tells whether good of n is at least the share num/den, in integers of 128 bits (CO-16):
// den*good >= num*n. With good = the count of values at or under a limit it is the same statement as
// "the nearest-rank quantile num/den is at or under the limit". Absent data never passes: n = 0 is
// false, and so is den = 0.
func AtMost(good, n, num, den uint64) bool {
	if n == 0 || den == 0 {
		return false
	}
	gh, gl := bits.Mul64(den, good)
	nh, nl := bits.Mul64(num, n)
	return gh > nh || (gh == nh && gl >= nl)
}

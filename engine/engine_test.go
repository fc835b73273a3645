package engine

import (
	"context"
	"errors"
	"math"
	"net/netip"
	"net/url"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"seatrial/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTarget(t *testing.T) {
	if (Target{}).OK() || len((Target{}).Addrs()) != 0 || (Target{}).Base() != (url.URL{}) {
		t.Error("the zero target is good for something")
	}
	u, _ := url.Parse("http://user:secret@127.0.0.1:80/?q#f")
	addrs := []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:80")}
	for name, f := range map[string]func() (Target, error){
		"no url":     func() (Target, error) { return Admit(nil, addrs, 0, Proof{Kind: "consent"}) },
		"no address": func() (Target, error) { return Admit(u, nil, 0, Proof{Kind: "consent"}) },
		"no proof":   func() (Target, error) { return Admit(u, addrs, 0, Proof{}) },
	} {
		if target, err := f(); !errors.Is(err, ErrNoTarget) || target.OK() {
			t.Errorf("%s: %v", name, err)
		}
	}
	target, err := Admit(u, addrs, 10, Proof{Kind: "consent", Name: "x"})
	if err != nil || !target.OK() || target.MaxRate() != 10 || target.Proof().Name != "x" {
		t.Fatalf("%+v %v", target, err)
	}
	base := target.Base()
	target.Addrs()[0] = netip.AddrPort{}
	if base.User != nil || base.RawQuery != "" || target.Addrs()[0] != addrs[0] {
		t.Errorf("%v %v", base.String(), target.Addrs())
	}
	other := target // slices of a run hold copies
	if target.Release() == nil || other.Release() != target.Release() || other.Write() != target.Write() || other.Write() == other.Release() {
		t.Error("copies of a target do not share their limits")
	}
}

// TestLimiterHoldsInEveryWindow: in no window of a second are there more permissions than max_rate,
// and one that comes when fewer were given is never refused.
func TestLimiterHoldsInEveryWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Float64Range(0.2, 60).Draw(t, "rate")
		l := NewLimiter(rate)
		window, most := time.Second, int(rate)
		if rate < 1 {
			window, most = time.Duration(1e9/rate), 1
		}
		var given []time.Duration
		now := time.Duration(0)
		for range rapid.IntRange(1, 300).Draw(t, "asks") {
			now += time.Duration(rapid.IntRange(0, 100_000_000).Draw(t, "gap"))
			inside := 0
			for _, g := range given {
				if now-g <= window {
					inside++
				}
			}
			if got, want := l.take(now), inside < most; got != want {
				t.Fatalf("at %s, with %d of %d given in the last %s: %v", now, inside, most, window, got)
			} else if got {
				given = append(given, now)
			}
		}
	})
}

func TestLimiterOfManyAndOfNone(t *testing.T) {
	for _, rate := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if l := NewLimiter(rate); l != nil || !l.Allow() {
			t.Errorf("a rate of %v limits", rate)
		}
	}
	l := NewLimiter(5e6)
	given := 0
	for at := time.Duration(0); at < time.Second; at += 100 {
		if l.take(at) {
			given++
		}
	}
	if given > 5_000_000 || given < 4_900_000 || len(l.ring) > maxRing {
		t.Errorf("%d permissions in a second at 5,000,000 per second, a ring of %d", given, len(l.ring))
	}
	if NewLimiter(1e-300).window <= 0 || !NewLimiter(1).Allow() {
		t.Error("a very low rate has no window")
	}
}

func TestEpochAndWaiter(t *testing.T) {
	if e := NewEpoch(time.Time{}); e.Now() < 0 || e.Now() > time.Minute {
		t.Errorf("the zero epoch is not now: %s", e.Now())
	}
	wall := time.Now().Add(time.Hour).Round(0) // without a monotonic reading
	if e := NewEpoch(wall); e.Now() > -59*time.Minute || !e.At(time.Second).Equal(e.Start().Add(time.Second)) {
		t.Errorf("an epoch in an hour reads %s", e.Now())
	}
	e := NewEpoch(time.Time{})
	w := NewWaiter(e)
	defer w.Stop()
	for _, d := range []time.Duration{-time.Second, 0, time.Millisecond, 7 * time.Millisecond} {
		if !w.Until(t.Context(), d) || e.Now() < d {
			t.Errorf("woken at %s, due at %s", e.Now(), d)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	timer := time.AfterFunc(5*time.Millisecond, cancel)
	defer timer.Stop()
	if w.Until(ctx, time.Hour) || w.Until(ctx, 0) {
		t.Error("a wait outlives its context")
	}
}

func TestHealth(t *testing.T) {
	s := StartHealth()
	x := 0
	for began := time.Now(); time.Since(began) < 50*time.Millisecond; x++ {
		runtime.Gosched()
	}
	h := s.Stop()
	if again := s.Stop(); again.CPU != h.CPU || again.LoopLagMax != h.LoopLagMax {
		t.Errorf("stopped twice: %+v and %+v", h, again)
	}
	if h.Cores < 1 || h.LoopLagP99 > h.LoopLagMax || h.LoopLagP99 < 0 || h.GCPauseTotal < 0 || h.CPUPeak < h.CPU || h.CPU > 1 {
		t.Errorf("%+v", h)
	}
	if runtime.GOOS == "linux" && (h.CPU <= 0 || h.FDLimit <= 0 || h.FDPeak <= 0 || h.Suspended < 0) {
		t.Errorf("unmeasured on Linux: %+v", h)
	}
	for name, v := range map[string]float64{"cpu": h.CPU, "tcp retransmits": float64(h.Retransmits), "interface drops": float64(h.IfaceDrops)} {
		named := false
		for _, u := range h.Unmeasured {
			named = named || u == name
		}
		if named != (v < 0) {
			t.Errorf("%s is %v, unmeasured: %v", name, v, h.Unmeasured)
		}
	}
	if v := s.Steal(); v > 1 {
		t.Errorf("steal %v", v)
	}
}

func TestHealthOverTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := StartHealth()
		time.Sleep(3500 * time.Millisecond)
		h := s.Stop()
		if n := len(s.CPUSeries()); n != 3 {
			t.Errorf("%d values after 3.5 s", n)
		}
		if h.LoopLagMax != 0 || h.Suspended != 0 {
			t.Errorf("%+v", h)
		}
	})
}

func TestHealthIsBoundedAndNotesGaps(t *testing.T) {
	s := &HealthSampler{step: cpuStep}
	for range 3 * maxCPU {
		s.addCPU(0.5)
	}
	if len(s.cpu) > maxCPU || s.step != 32*time.Second || s.cpu[0] != 0.5 {
		t.Errorf("%d values of %s", len(s.cpu), s.step)
	}
	for range 98 {
		s.noteLag(0)
	}
	s.noteLag(3 * time.Millisecond)
	s.noteLag(5 * time.Second)
	if s.lagQuantile() != 3100*time.Microsecond || s.lagMax != 5*time.Second || s.gaps != 5*time.Second {
		t.Errorf("p99 %s, max %s, stood still %s", s.lagQuantile(), s.lagMax, s.gaps)
	}
	unread := s.sum(reading{cpu: -1, retransmits: -1, drops: -1, suspended: -1})
	if unread.CPU != -1 || unread.Retransmits != -1 || len(unread.Unmeasured) != 4 {
		t.Errorf("%+v", unread)
	}
}

func TestPreflight(t *testing.T) {
	if err := Preflight(Limits{MaxConnections: 10}, 1); err != nil {
		t.Errorf("ten connections: %v", err)
	}
	if runtime.GOOS != "linux" {
		return
	}
	f, ok := fault.As(Preflight(Limits{MaxConnections: math.MaxInt32}, 1))
	if !ok || f.Code != fault.GEN004 || f.Next == "" {
		t.Errorf("two thousand million connections: %v", f)
	}
}

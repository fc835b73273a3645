package engine

import (
	"runtime"
	"slices"
	"sync"
	"time"
)

const (
	cpuStep  = time.Second
	lagStep  = 5 * time.Millisecond
	maxCPU   = 4096 // seconds of the series; then two seconds are merged into one, and so on
	lagBins  = 1024 // of lagBin each; more is in the last one and in the maximum
	lagBin   = 100 * time.Microsecond
	standing = 250 * time.Millisecond // a timer this late means that the machine or the process stood still
)

// HealthSampler watches the generator while it sends (LD-11).
type HealthSampler struct {
	stop  chan struct{}
	done  sync.WaitGroup
	began time.Time
	first reading
	gc    time.Duration

	mu     sync.Mutex
	cpu    []float64
	step   time.Duration // of an element of cpu
	fdPeak int
	lags   [lagBins]uint64
	lagN   uint64
	lagMax time.Duration
	gaps   time.Duration
	health Health
	ended  bool
}

// reading is one look at what the system counts. Negative means that it could not be read.
type reading struct {
	cpu         time.Duration // of the process
	retransmits int64
	drops       int64
	suspended   time.Duration // of the machine since it started
	stolen      time.Duration // by the host of a virtual machine, all cores
}

// StartHealth begins to watch. Stop must be called.
func StartHealth() *HealthSampler {
	s := &HealthSampler{stop: make(chan struct{}), began: time.Now(), first: readSystem(), gc: gcPauses(), step: cpuStep}
	s.done.Go(s.watchCPU)
	s.done.Go(s.watchTimer)
	return s
}

// Stop ends the watch and gives what was seen. What the engine counts itself, such as connections and
// bytes, is added by httpload.Result.AddTo. It may be called more than once.
func (s *HealthSampler) Stop() Health {
	s.mu.Lock()
	if s.ended {
		defer s.mu.Unlock()
		return s.health
	}
	s.ended = true
	s.mu.Unlock()
	close(s.stop)
	s.done.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.health = s.sum(readSystem())
	return s.health
}

// CPUSeries is the share of the cores that the process used, by second; by two, four, ... seconds in
// a run of more than 68 minutes. Negative where it could not be read.
func (s *HealthSampler) CPUSeries() []float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.cpu)
}

// Steal is the share of the machine's CPU time that its host gave to others since StartHealth;
// negative when it cannot be read.
func (s *HealthSampler) Steal() float64 {
	now := readSystem().stolen
	if now < 0 || s.first.stolen < 0 {
		return -1
	}
	return share(now-s.first.stolen, time.Since(s.began), runtime.NumCPU())
}

func (s *HealthSampler) sum(last reading) Health {
	h := Health{CPU: -1, CPUPeak: -1, Cores: runtime.GOMAXPROCS(0), FDLimit: fdLimit(), FDPeak: s.fdPeak,
		LoopLagMax: s.lagMax, LoopLagP99: s.lagQuantile(), GCPauseTotal: gcPauses() - s.gc, Retransmits: -1, IfaceDrops: -1, Suspended: s.gaps}
	missing := func(name string) { h.Unmeasured = append(h.Unmeasured, name) }
	if s.first.cpu >= 0 && last.cpu >= 0 {
		h.CPU = share(last.cpu-s.first.cpu, time.Since(s.began), h.Cores)
		h.CPUPeak = h.CPU
		for _, v := range s.cpu {
			h.CPUPeak = max(h.CPUPeak, v)
		}
	} else {
		missing("cpu")
	}
	if h.FDLimit < 0 || h.FDPeak < 0 {
		missing("file descriptors")
	}
	if s.first.retransmits >= 0 && last.retransmits >= 0 {
		h.Retransmits = max(0, last.retransmits-s.first.retransmits)
	} else {
		missing("tcp retransmits")
	}
	if s.first.drops >= 0 && last.drops >= 0 {
		h.IfaceDrops = max(0, last.drops-s.first.drops)
	} else {
		missing("interface drops")
	}
	if s.first.suspended >= 0 && last.suspended >= 0 {
		if d := last.suspended - s.first.suspended; d > 100*time.Millisecond { // the two clocks are not read at one instant
			h.Suspended += d
		}
	} else {
		missing("suspend")
	}
	return h
}

// share is CPU time over wall time and cores, 0..1.
func share(used, wall time.Duration, cores int) float64 {
	if wall <= 0 || cores <= 0 {
		return 0
	}
	return min(1, max(0, float64(used)/float64(wall)/float64(cores)))
}

func (s *HealthSampler) watchCPU() {
	tick := time.NewTicker(cpuStep)
	defer tick.Stop()
	s.noteFD()
	from, used := s.began, s.first.cpu
	for {
		select {
		case <-s.stop:
			s.noteFD()
			return
		case <-tick.C:
		}
		now := time.Now()
		s.noteFD()
		if now.Sub(from) < s.step-cpuStep/2 {
			continue
		}
		cpu := processCPU()
		v := -1.0
		if cpu >= 0 && used >= 0 {
			v = share(cpu-used, now.Sub(from), runtime.GOMAXPROCS(0))
		}
		from, used = now, cpu
		s.addCPU(v)
	}
}

// addCPU keeps the series bounded for any duration.
func (s *HealthSampler) addCPU(v float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cpu = append(s.cpu, v)
	if len(s.cpu) < maxCPU {
		return
	}
	for i := range maxCPU / 2 {
		s.cpu[i] = (s.cpu[2*i] + s.cpu[2*i+1]) / 2
	}
	s.cpu = s.cpu[:maxCPU/2]
	s.step *= 2
}

func (s *HealthSampler) noteFD() {
	n := openFDs()
	s.mu.Lock()
	defer s.mu.Unlock()
	if n < 0 && s.fdPeak == 0 {
		s.fdPeak = -1
	}
	s.fdPeak = max(s.fdPeak, n)
}

// watchTimer measures how late timers fire: what the dispatcher of a run suffers too.
func (s *HealthSampler) watchTimer() {
	timer := time.NewTimer(lagStep)
	defer timer.Stop()
	due := time.Now().Add(lagStep)
	for {
		select {
		case <-s.stop:
			return
		case <-timer.C:
		}
		now := time.Now()
		s.noteLag(max(0, now.Sub(due)))
		due = now.Add(lagStep)
		timer.Reset(lagStep)
	}
}

func (s *HealthSampler) noteLag(lag time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lags[min(int(lag/lagBin), lagBins-1)]++
	s.lagN++
	s.lagMax = max(s.lagMax, lag)
	if lag >= standing {
		s.gaps += lag
	}
}

// lagQuantile is the upper end of the bin that holds the 99th percentile by nearest rank.
func (s *HealthSampler) lagQuantile() time.Duration {
	rank := (99*s.lagN + 99) / 100
	var sum uint64
	for i, n := range s.lags {
		if sum += n; sum >= rank && rank > 0 {
			if i == lagBins-1 {
				return s.lagMax
			}
			return min(time.Duration(i+1)*lagBin, s.lagMax)
		}
	}
	return 0
}

// gcPauses is the total of stop-the-world pauses of the collector since the process began.
func gcPauses() time.Duration {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return time.Duration(m.PauseTotalNs)
}

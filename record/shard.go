package record

import "sync"

// Shard records the samples of one worker. Add does not allocate once the ranges in use have been
// seen, and memory does not grow with the number of samples. It is safe for concurrent use.
type Shard struct {
	mu    sync.Mutex
	tally *Tally
	live  live
}

// NewShard makes an empty shard.
func NewShard(c Config) *Shard {
	return &Shard{tally: NewTally(c), live: newLive(c.Routes)}
}

// Add records one ended arrival. s is not kept.
func (s *Shard) Add(sample *Sample) {
	s.mu.Lock()
	s.tally.add(sample)
	s.live.add(sample)
	s.mu.Unlock()
}

// AddAll records many ended arrivals at once. They are not kept.
func (s *Shard) AddAll(samples []Sample) {
	s.mu.Lock()
	for i := range samples {
		s.tally.add(&samples[i])
		s.live.add(&samples[i])
	}
	s.mu.Unlock()
}

// Tally gives a copy of everything that was recorded until now.
func (s *Shard) Tally() *Tally {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := NewTally(s.tally.Config)
	t.Merge(s.tally)
	return t
}

// MergeInto adds everything that was recorded until now to t, without a copy in between.
func (s *Shard) MergeInto(t *Tally) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Merge(s.tally)
}

// Snapshot gives a copy of the running totals and the last few seconds, for a live view. It is cheap:
// some tens of kilobytes are copied.
func (s *Shard) Snapshot() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live.snapshot()
}

package httpload

import (
	"context"
	"crypto/tls"
	"slices"
	"time"

	"seatrial/engine"
	"seatrial/record"
	"seatrial/schedule"
)

// arrivals opens the connections that their own schedule wants, each when it is due.
func (p *portable) arrivals(ctx context.Context) {
	w := engine.NewWaiter(p.epoch)
	defer w.Stop()
	from := p.cfg.Connections.Arrivals
	for a, ok := from.Next(); ok; a, ok = from.Next() {
		if p.stopped.Load() || !w.Until(ctx, a.Due) {
			return
		}
		p.arrive(waiting{Arrival: schedule.Arrival{Due: a.Due}})
	}
}

// arrive opens a connection that no request asked for.
func (p *portable) arrive(w waiting) {
	p.mu.Lock()
	defer p.mu.Unlock()
	account := p.observed.account(&p.cfg, w.Due)
	account.Due++
	switch {
	case p.stopped.Load():
		account.Abandoned++
	case !p.cfg.Target.Dial().Allow() || len(p.conns) >= p.cfg.Limits.MaxConnections && !p.evictLocked(nil):
		account.Unsent++
	default:
		p.pending.Add(1)
		p.dial(w, false)
	}
}

// arrived counts such a connection once it stands, or has failed.
func (p *portable) arrived(due time.Duration, o record.Outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.pending.Done()
	account := p.observed.account(&p.cfg, due)
	if o == record.Answered {
		account.Opened++
		return
	}
	account.missed(o)
}

func (p *portable) shook(s *tls.ConnectionState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.observed.shook(s)
}

// evict closes the connection that has been idle longest, but not this one.
func (p *portable) evict(but *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.evictLocked(but)
}

// evictLocked is false when there is none. p.mu is held.
func (p *portable) evictLocked(but *conn) bool {
	for i := 0; i < len(p.idle); {
		c := p.idle[i]
		if c == but {
			i++
			continue
		}
		p.idle = slices.Delete(p.idle, i, i+1)
		if c.state.CompareAndSwap(stateIdle, stateDead) {
			delete(p.conns, c)
			c.quit()
			return true
		}
	}
	for _, x := range p.shared {
		if x.c != but && x.load == 0 && !x.over {
			x.over = true
			delete(p.conns, x.c)
			x.c.quit()
			return true
		}
	}
	return false
}

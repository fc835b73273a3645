package httpload

import "time"

// deadlines holds requests in the order of their deadlines. Almost all entries of one list have the same
// time-out counted from moments that never go back, so that adding, removing and finding the first cost
// a few pointers and no memory; only what is sent again goes a few places further in.
type deadlines struct{ first, last *deadline }

// deadline is one place in a list; a request has one for each list that it can be in.
type deadline struct {
	at         time.Duration // from the epoch
	owner      *flight
	prev, next *deadline
	in         *deadlines // nil: in no list
}

// add puts d in its place, which is mostly the last. It takes d out of the list in which it is.
func (l *deadlines) add(d *deadline, at time.Duration) {
	d.remove()
	before := l.last
	for before != nil && before.at > at {
		before = before.prev
	}
	d.at, d.in, d.prev = at, l, before
	if before == nil {
		d.next, l.first = l.first, d
	} else {
		d.next, before.next = before.next, d
	}
	if d.next == nil {
		l.last = d
	} else {
		d.next.prev = d
	}
}

// remove takes d out of its list, if it is in one.
func (d *deadline) remove() {
	l := d.in
	if l == nil {
		return
	}
	if d.prev == nil {
		l.first = d.next
	} else {
		d.prev.next = d.next
	}
	if d.next == nil {
		l.last = d.prev
	} else {
		d.next.prev = d.prev
	}
	d.prev, d.next, d.in = nil, nil, nil
}

// due gives the first entry whose deadline has passed, and takes it out; nil when there is none.
func (l *deadlines) due(now time.Duration) *deadline {
	d := l.first
	if d == nil || d.at > now {
		return nil
	}
	d.remove()
	return d
}

// earliest gives the smaller of t and the first deadline of the list.
func (l *deadlines) earliest(t time.Duration) time.Duration {
	if l.first != nil {
		return min(t, l.first.at)
	}
	return t
}

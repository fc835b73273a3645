// Package httpload sends HTTP requests when they are due and classifies what comes back.
package httpload

// Request is one concrete request. The driver owns it and reuses it.
type Request struct {
	Route  uint32
	Method string
	Target []byte // request-target, escaped, e.g. /orders/42
	Refuse bool   // the route policy forbids this concrete request: count it UnsentPolicy, write nothing
}

// Requests gives request number i: a pure function of (seed, plan, i). At fills r and must not
// allocate once r's buffers have grown. It is called from several goroutines at once.
type Requests interface {
	At(i uint64, r *Request)
}

// router is a Requests that can tell the route of a request without making the request. After a stop,
// what was not sent of a long schedule is counted by it.
type router interface{ Route(i uint64) uint32 }

// routeOf gives the route of request i; r is scratch.
func routeOf(q Requests, i uint64, r *Request) uint32 {
	if f, ok := q.(router); ok {
		return f.Route(i)
	}
	q.At(i, r)
	return r.Route
}

// Header is one header line that every request carries.
type Header struct{ Name, Value string }

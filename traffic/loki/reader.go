package loki

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"time"

	"seatrial/fault"
)

// shortest is the shortest range of time that a server which refuses longer ones is asked for.
const shortest = int64(time.Second)

// Reader gives the lines of a query in the order of their time, each exactly once. It holds one page.
// It is used by one goroutine.
//
// A page that is as long as its limit may have been cut among entries of one instant, so those of its
// last instant are left, and the next page begins with them. Nothing is compared by its content: two
// entries that are alike in everything are two.
type Reader struct {
	ctx    context.Context
	client *client
	page   page
	at     int // index of the current entry, from 1
	ready  int // of the page's entries, how many are given

	start, end int64 // what is still to be asked for, in nanoseconds since 1970
	width      int64 // of the range of one request, in nanoseconds
	batch      int   // entries of a page, as a rule
	limit      int   // entries of the next page
	most       int   // entries that the server allows; 0: not known

	number int64
	err    error
	done   bool
}

// New prepares a reader; it asks for nothing yet. A configuration that cannot work is refused with all
// that is wrong with it (TRF-020).
func New(ctx context.Context, config Config) (*Reader, error) {
	if err := config.Check(); err != nil {
		return nil, err
	}
	c, err := newClient(&config)
	if err != nil {
		return nil, fault.New(fault.TRF020, "the URL of %s is not one", config.Backend).Because(err)
	}
	from, to := config.window(time.Now())
	r := &Reader{ctx: ctx, client: c, start: from.UnixNano(), end: to.UnixNano(), batch: config.BatchSize}
	if r.batch == 0 {
		r.batch = DefaultBatch
	}
	r.limit, r.width = r.batch, r.end-r.start
	return r, nil
}

// Next advances to the next entry; false at the end, or on an error that Err then gives.
func (r *Reader) Next() bool {
	for r.at >= r.ready {
		if r.done || r.err != nil {
			return false
		}
		if err := r.turn(); err != nil {
			r.err = r.tell(err)
			return false
		}
	}
	r.at++
	r.number++
	return true
}

// Bytes is the current line without its end, valid until the next call of Next; empty when Fault is
// not.
func (r *Reader) Bytes() []byte { return r.page.line(r.at - 1) }

// Fault tells why the current line is not whole, as a short phrase; empty for a whole line.
func (r *Reader) Fault() string { return r.page.list[r.at-1].fault }

// Time is when the current entry was logged, in nanoseconds since 1970, as the server has it.
func (r *Reader) Time() int64 { return r.page.list[r.at-1].at }

// Number is the number of the current entry, from 1.
func (r *Reader) Number() int64 { return r.number }

// Input names the server.
func (r *Reader) Input() string { return r.client.endpoint.Host }

// Err is what ended reading; nil after a good end. It is a *fault.Error, or the context's.
func (r *Reader) Err() error { return r.err }

// Requests tells how many requests were sent, and how many of them again.
func (r *Reader) Requests() (sent, again int64) { return r.client.asked, r.client.retried }

// Close gives up the connection. It may be called more than once.
func (r *Reader) Close() error {
	r.client.http.CloseIdleConnections()
	r.done, r.ready = true, 0
	return nil
}

// turn asks for the next page, or learns what the server allows.
func (r *Reader) turn() error {
	r.at, r.ready = 0, 0
	till := r.end
	if r.end-r.start > r.width {
		till = r.start + r.width
	}
	err := r.client.ask(r.ctx, r.start, till, r.limit, &r.page)
	if refused, ok := errors.AsType[*refusal](err); ok {
		switch {
		case tooMany(refused):
			return r.fewer(refused)
		case tooWide(refused):
			if r.width = min(r.width, till-r.start) / 2; r.width >= shortest {
				return nil
			}
		}
	}
	if errors.Is(err, errTooLarge) {
		return r.smaller()
	}
	if err != nil {
		return err
	}
	return r.accept(till)
}

// fewer lowers the limit to what the server allows.
func (r *Reader) fewer(refused *refusal) error {
	most := allowed(refused)
	if most == 0 || most >= r.limit {
		most = r.limit / 2
	}
	if most == 0 {
		return refused
	}
	if r.limit > r.batch { // it was raised for the sake of one instant
		if most <= r.batch {
			return r.crowded(r.batch)
		}
		r.limit, r.most = most, most
		return nil
	}
	r.batch, r.limit, r.most = most, most, most
	return nil
}

// smaller halves the limit, as the entries are long.
func (r *Reader) smaller() error {
	if r.limit > r.batch {
		return r.crowded(r.batch)
	}
	if r.limit == 1 {
		return errTooLarge
	}
	r.limit /= 2
	r.batch = r.limit
	return nil
}

// accept takes a page of [start, till).
func (r *Reader) accept(till int64) error {
	r.page.sort()
	list := r.page.list
	n := len(list)
	if n > 0 && list[0].at < r.start {
		return malformed("the answer holds an entry from before the time that was asked for")
	}
	full := n >= r.limit
	for n > 0 && list[n-1].at >= till { // the end is not part of the range, whoever sees it otherwise
		n--
		full = false // and up to it everything is there
	}
	if !full {
		if err := r.proveEnd(list[:n], till); err != nil {
			return err
		}
		r.ready, r.start, r.limit = n, till, r.batch
		r.done = till >= r.end
		return nil
	}
	last := list[n-1].at
	if last == r.start {
		return r.raise()
	}
	for n > 0 && list[n-1].at == last {
		n--
	}
	r.ready, r.start, r.limit = n, last, r.batch
	return nil
}

// raise asks for more at once: all of a full page belongs to one instant.
func (r *Reader) raise() error {
	if r.most > 0 && r.limit >= r.most {
		return r.crowded(r.limit)
	}
	r.limit *= 2
	if r.most > 0 {
		r.limit = min(r.limit, r.most)
	}
	return nil
}

// proveEnd makes sure that a page which is shorter than its limit holds everything. A proxy that
// gives fewer entries than it is asked for and does not say so has a round number for it, so only then
// is it worth a request to see whether anything follows.
func (r *Reader) proveEnd(list []entry, till int64) error {
	n := len(list)
	if n == 0 || n%10 != 0 && n%64 != 0 || list[n-1].at+1 >= till {
		return nil
	}
	var after page
	if err := r.client.ask(r.ctx, list[n-1].at+1, till, 1, &after); err != nil {
		return err
	}
	for _, e := range after.list {
		if e.at > list[n-1].at && e.at < till {
			return &capped{asked: r.limit, given: n}
		}
	}
	return nil
}

// capped is a server that keeps entries back without saying so.
type capped struct{ asked, given int }

// Error implements error.
func (*capped) Error() string { return "entries are kept back" }

// crowd is an instant with more entries than a page can hold.
type crowd struct {
	at    int64
	limit int
}

// Error implements error.
func (*crowd) Error() string { return "an instant holds more entries than a page" }

func (r *Reader) crowded(limit int) error { return &crowd{r.start, limit} }

// tell words an error for people.
func (r *Reader) tell(err error) error {
	host, kind := r.Input(), r.client.config.Backend
	var refused *refusal
	var full *crowd
	var short *capped
	var away elsewhere
	switch {
	case r.ctx.Err() != nil:
		return err
	case errors.As(err, &full):
		return fault.New(fault.TRF022, "more than %d entries of %s bear the time %s, and it gives no more at once, so that the rest cannot be asked for",
			full.limit, host, time.Unix(0, full.at).UTC().Format(time.RFC3339Nano))
	case errors.As(err, &short):
		return fault.New(fault.TRF022, "%s gave %d entries where %d were asked for, and has more", host, short.given, short.asked).
			WithNext("Set a batch size of at most %d, and take any limit out of the query.", short.given)
	case errors.As(err, &away):
		return fault.New(fault.TRF021, "%s sends the question on to %s, which was not named", host, string(away)).
			WithNext("Give the URL of the server itself, if it may be asked.")
	case errors.As(err, &refused):
		return r.refused(refused, err)
	case is[notLogs](err):
		return fault.New(fault.TRF021, "%s of %s cannot be traffic: %v", "the query", host, err).
			WithNext("Ask for log lines: a selection such as {app=\"nginx\"}, without a function over it.").Because(err)
	case is[said](err), is[malformed](err), errors.Is(err, errTooLarge):
		return fault.New(fault.TRF021, "%s cannot be read as %s: %s", host, kind, printable(err.Error(), 400)).
			WithNext("Check that the URL is that of %s itself.", kind).Because(err)
	case is[*tls.CertificateVerificationError](err), is[tls.RecordHeaderError](err):
		return fault.New(fault.TRF021, "%s cannot be trusted: %s", host, printable(err.Error(), 400)).Because(err)
	}
	return fault.New(fault.TRF023, "%s cannot be read: %s", host, printable(err.Error(), 400)).Because(err)
}

// refused words an answer of another status than 200.
func (r *Reader) refused(refused *refusal, err error) error {
	host, kind := r.Input(), r.client.config.Backend
	e := fault.New(fault.TRF021, "%s refuses the query: %s", host, err).Because(err)
	switch status := refused.status; {
	case tooMany(refused), tooWide(refused):
		e.Next = "Ask for less: a narrower query, or a shorter range."
	case status == http.StatusUnauthorized:
		return e.WithNext("Name the environment variables that hold a user and a password or a bearer token, or set the tenant.")
	case status == http.StatusForbidden:
		return e.WithNext("Use credentials, or a tenant, that may read these logs.")
	case status == http.StatusNotFound:
		return e.WithNext("Check the URL: %s is looked for at %s.", kind, printable(r.client.endpoint.Path, 200))
	case status == http.StatusTooManyRequests, status >= 500 && status != http.StatusNotImplemented:
		return fault.New(fault.TRF023, "%s does not answer the query: %s", host, err).Because(err)
	}
	return e
}

package recorded

import (
	"maps"

	"seatrial/traffic"
)

// events gives the events of another source as requests.
type events struct {
	reader
	from traffic.Source
	n    int64
}

// FromEvents reads what a source of events tells of requests: access logs, Loki, traces. The URL is the
// path and the query, if the source was asked for it. There are no headers and no bodies; a body that the
// event says there was is counted. Request.Line is the number of the event.
func FromEvents(from traffic.Source) Source {
	e := &events{reader: newReader(nil, ""), from: from}
	return e
}

// Scan implements Source.
func (e *events) Scan() bool {
	for e.from.Scan() {
		e.n++
		ev := e.from.Event()
		e.reset(e.n)
		e.texts = append(e.texts, ev.Path...)
		if ev.Query != nil {
			e.texts = append(append(e.texts, '?'), ev.Query...)
		}
		e.req.URL = e.texts[:len(e.texts):len(e.texts)]
		e.req.Method = e.keep(ev.Method)
		e.req.Client, e.req.UnixNano = ev.Client, ev.UnixNano
		if len(ev.Path) == 0 {
			e.unfit("no path")
			continue
		}
		if refused, unfit := e.check(); refused+unfit != "" {
			e.unfit(refused + unfit)
			continue
		}
		if ev.RequestSize > 0 {
			e.note(noteNoBody)
		}
		return true
	}
	return false
}

// Err implements Source.
func (e *events) Err() error { return e.from.Err() }

// Skipped implements Source.
func (e *events) Skipped() *traffic.Skips {
	s := *e.from.Skipped()
	s.Reasons, s.Notes = maps.Clone(s.Reasons), maps.Clone(s.Notes)
	if s.Reasons == nil {
		s.Reasons = map[string]int64{}
	}
	if s.Notes == nil {
		s.Notes = map[string]int64{}
	}
	for why, n := range e.reason {
		s.Reasons[why] += n
	}
	for what, n := range e.notes {
		s.Notes[what] += n
	}
	return &s
}

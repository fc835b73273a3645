package accesslog

import (
	"bytes"

	"seatrial/traffic"
)

// json reads a JSON line. A record of a collector, or of an application, that holds a log line in turn is
// read as that line.
func (s *Source) json(line []byte) result {
	o := &s.object
	if r := o.read(line); r != isRequest {
		return r
	}
	s.form = o.form
	if !o.aboutRequest() {
		return s.message(o)
	}
	if !s.allowed() {
		return otherFormat
	}
	if !s.objectTime(o) {
		return badTime
	}
	if !s.status(o.values[keyStatus]) {
		return noStatus
	}
	s.event.RequestSize, s.event.ResponseSize = size(o.values[keyRequestSize]), size(o.values[keyResponseSize])
	s.objectTook(o)
	s.agent(o.values[keyAgent])
	if s.replay {
		if s.event.Client = dashless(o.values[keyForwarded]); s.event.Client == nil {
			s.event.Client = dashless(o.values[keyClient])
		}
	}
	return s.objectRequest(o)
}

// aboutRequest tells a record of a request from a server's other messages. Caddy writes records with a
// request object about what its handlers do, besides the one of its access log.
func (o *object) aboutRequest() bool {
	v := &o.values
	if logger := v[keyLogger]; o.form == caddy && logger != nil && !bytes.HasPrefix(logger, []byte("http.log.access")) {
		return false
	}
	target := v[keyTarget] != nil || v[keyPath] != nil
	if v[keyRequest] == nil && !(v[keyMethod] != nil && target) {
		// a record with a status is one of a request, whatever it lacks
		return v[keyStatus] != nil && o.form != jsonOther && (v[keyMethod] != nil || target || o.form == envoyJSON)
	}
	return v[keyStatus] != nil || v[keyStart] != nil || v[keyTime] != nil
}

// message reads the text of a record that tells of no request itself.
func (s *Source) message(o *object) result {
	text, escaped, wrapped := o.values[keyWrapped], o.escaped[keyWrapped], true
	if text == nil {
		text, escaped, wrapped = o.values[keyMessage], o.escaped[keyMessage], false
	}
	if len(text) < 16 || s.named != nil { // no line of a log is that short
		return notAccess
	}
	if escaped {
		s.inner = unescape(s.inner[:0], text)
		text = s.inner
	}
	text = s.strip(bytes.TrimRight(text, "\r\n"))
	if len(text) == 0 || text[0] == '{' && !wrapped {
		return notAccess
	}
	var r result
	if text[0] == '{' {
		if r = o.read(text); r == isRequest && o.values[keyWrapped] != nil {
			return notAccess // a record within a record within a record
		} else if r == isRequest {
			r = s.json(text)
		}
	} else {
		r = s.recognise(text)
	}
	if r > notAccess && !wrapped {
		s.event = traffic.Event{}
		return notAccess
	}
	return r
}

// objectTime reads when the request began, or when the line was written. A record without a time is fine:
// its event has none.
func (s *Source) objectTime(o *object) bool {
	at, ok := int64(0), true
	switch {
	case o.values[keyStart] != nil:
		at, ok = s.anyTime(o.values[keyStart])
	case o.values[keyTime] != nil:
		at, ok = s.anyTime(o.values[keyTime])
	}
	s.event.UnixNano = at
	return ok
}

// anyTime reads a time in any form that JSON logs have it.
func (s *Source) anyTime(b []byte) (int64, bool) {
	b = bytes.Trim(b, "[]")
	if len(b) > stampLen && b[2] == '/' {
		at, _, ok := s.clock.parse(b)
		return at, ok
	}
	if len(b) > 10 && (b[4] == '-' || b[4] == '/') {
		at, _, ok := s.clock.iso(b)
		return at, ok
	}
	return s.clock.epoch(b, 0)
}

// objectTook reads the duration. The time of a line is that of its writing, when the request was done,
// unless it says when the request began, as Linkerd's and Google's do by other names.
func (s *Source) objectTook(o *object) {
	end := o.values[keyStart] == nil && o.form != linkerd && o.form != jsonGoogle
	for k, unit := range [...]int64{keyNanos: 1, keyMicros: microsecond, keyMillis: millisecond, keySeconds: second} {
		if unit == 0 {
			continue
		}
		if d, ok := decimal(o.values[k], unit); ok {
			s.took(d, end)
			return
		}
	}
	if o.values[keyStart] != nil && o.values[keyEnd] != nil {
		unit := s.clock.unit
		if until, ok := s.anyTime(o.values[keyEnd]); ok && until >= s.event.UnixNano {
			s.clock.unit = unit
			s.took(until-s.event.UnixNano, false)
			return
		}
	}
	if d, ok := withUnit(o.values[keyText]); ok {
		s.took(d, end)
		return
	}
	s.bareTook(o, end)
}

// bareTook reads a duration whose key does not tell its unit.
func (s *Source) bareTook(o *object, end bool) {
	bare := o.values[keyBare]
	if bare == nil {
		return
	}
	if d, ok := withUnit(bare); ok {
		s.took(d, end)
		return
	}
	unit := int64(0)
	switch o.form {
	case caddy:
		unit = second
	case envoyJSON:
		unit = millisecond
	}
	if unit == 0 {
		s.unitless++
		return
	}
	if d, ok := decimal(bare, unit); ok {
		s.took(d, end)
	}
}

// withUnit reads a duration such as 12.5ms or 1m2.5s, in nanoseconds.
func withUnit(b []byte) (total int64, ok bool) {
	for len(b) > 0 {
		n := 0
		for n < len(b) && (isDigit(b[n]) || b[n] == '.') {
			n++
		}
		m := n
		for m < len(b) && !isDigit(b[m]) {
			m++
		}
		unit := int64(0)
		switch string(bytes.TrimSpace(b[n:m])) {
		case "ns":
			unit = 1
		case "us", "µs", "μs":
			unit = microsecond
		case "ms":
			unit = millisecond
		case "s":
			unit = second
		case "m":
			unit = 60 * second
		case "h":
			unit = 3600 * second
		}
		if unit == 0 {
			return 0, false
		}
		d, fine := decimal(b[:n], unit)
		if !fine || total > 1<<62-d {
			return 0, false
		}
		total += d
		b = b[m:]
		ok = true
	}
	return total, ok
}

// objectRequest reads the request, in one piece or in several.
func (s *Source) objectRequest(o *object) result {
	if o.values[keyRequest] != nil {
		line := s.resolved(o, keyRequest)
		switch {
		case s.request(line):
			return isRequest
		case o.values[keyMethod] == nil:
			return noRequest
		case len(line) > 0 && line[0] == '/' && bytes.IndexByte(line, ' ') < 0:
			return s.split(o.values[keyMethod], line)
		}
	}
	target := s.resolved(o, keyTarget)
	if target == nil {
		target = s.resolved(o, keyPath)
	}
	r := s.split(o.values[keyMethod], target)
	if s.replay && s.event.Query == nil && r == isRequest {
		s.event.Query = bytes.TrimPrefix(dashless(s.resolved(o, keyQuery)), []byte("?"))
	}
	return r
}

// resolved is a text without its escapes; nil when the line does not have it.
func (s *Source) resolved(o *object, k key) []byte {
	if !o.escaped[k] || o.values[k] == nil {
		return o.values[k]
	}
	from := len(s.texts)
	s.texts = unescape(s.texts, o.values[k])
	return s.texts[from:len(s.texts):len(s.texts)]
}

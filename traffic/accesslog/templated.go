package accesslog

import (
	"bytes"

	"seatrial/traffic/logformat"
)

// templated reads a line as the format string that the user gave has it.
func (s *Source) templated(line []byte) result {
	v := &s.values
	if s.reason = s.template.Match(line, v); s.reason != "" {
		return noMatch
	}
	s.form = template
	if !s.templateTime(v) {
		return badTime
	}
	if !s.status(v[logformat.Status]) {
		return noStatus
	}
	s.event.RequestSize, s.event.ResponseSize = size(v[logformat.RequestSize]), size(v[logformat.ResponseSize])
	s.templateTook(v)
	s.agent(v[logformat.Agent])
	if s.replay {
		if s.event.Client = dashless(v[logformat.Forwarded]); s.event.Client == nil {
			s.event.Client = dashless(v[logformat.Client])
		}
	}
	return s.templateRequest(v)
}

// templateRequest reads the request, in one piece or in several.
func (s *Source) templateRequest(v *logformat.Values) result {
	if s.template.Has(logformat.Request) {
		if !s.request(s.plain(v[logformat.Request])) {
			return noRequest
		}
		return isRequest
	}
	r := s.split(v[logformat.Method], s.plain(v[logformat.Target]))
	if q := bytes.TrimPrefix(dashless(v[logformat.Query]), []byte("?")); s.replay && len(q) > 0 {
		s.event.Query = s.plain(q)
	}
	return r
}

// plain resolves the escapes of JSON, where the format has them.
func (s *Source) plain(b []byte) []byte {
	if !s.template.JSON() || bytes.IndexByte(b, '\\') < 0 {
		return b
	}
	from := len(s.texts)
	s.texts = unescape(s.texts, b)
	return s.texts[from:len(s.texts):len(s.texts)]
}

// templateTime reads the most exact time that the format holds. A format without one is fine: its events
// have no time.
func (s *Source) templateTime(v *logformat.Values) bool {
	var at int64
	ok := true
	switch {
	case v[logformat.TimeMicros] != nil:
		at, ok = s.clock.epoch(v[logformat.TimeMicros], microsecond)
	case v[logformat.TimeMillis] != nil:
		at, ok = s.clock.epoch(v[logformat.TimeMillis], millisecond)
	case v[logformat.TimeSeconds] != nil:
		at, ok = s.clock.epoch(v[logformat.TimeSeconds], second)
	case v[logformat.TimeISO] != nil:
		at, _, ok = s.clock.iso(v[logformat.TimeISO])
	case v[logformat.TimeCLF] != nil:
		at, _, ok = s.clock.parse(v[logformat.TimeCLF])
	}
	if !ok {
		return false
	}
	if part, ok := decimal(v[logformat.FracMillis], millisecond); ok && part < second {
		at, s.clock.unit = at+part, millisecond
	}
	if part, ok := decimal(v[logformat.FracMicros], microsecond); ok && part < second {
		at, s.clock.unit = at+part, microsecond
	}
	if shift, ok := offset(v[logformat.Zone]); ok {
		at -= shift
	}
	s.event.UnixNano = at
	return true
}

// templateTook reads the most exact duration that the format holds.
func (s *Source) templateTook(v *logformat.Values) {
	b, unit := v[logformat.Micros], microsecond
	if b == nil {
		b, unit = v[logformat.Millis], millisecond
	}
	if b == nil {
		b, unit = v[logformat.Seconds], second
	}
	if d, ok := decimal(b, unit); ok {
		s.took(d, s.template.EndTime())
	}
}

package accesslog

import (
	"bytes"
	"slices"
	"time"

	"seatrial/traffic/input"
)

// clf reads a line of the family of the common log format. The grammar is
//
//	[host[:port]] address ident user [time] "request" status size ["referrer" "agent"] anything
//
// where the user may hold spaces and may be missing, and the address may be a quoted list. What follows
// the agent is read only where it is unmistakably that of ingress-nginx or of Traefik: otherwise its
// meaning depends on a configuration that the log does not carry.
func (s *Source) clf(line []byte) result {
	rest, next, r := s.who(line)
	if r != isRequest {
		return r
	}
	open := bytes.IndexByte(rest, '[')
	if open < 0 || bytes.IndexByte(rest[:open], '"') >= 0 {
		return noTime
	}
	at, rest, ok := s.time(rest[open+1:])
	if !ok {
		return badTime
	}
	if len(rest) == 0 || rest[0] != '"' {
		return noQuotes
	}
	end := closing(rest[1:])
	if end < 0 {
		return noQuotes
	}
	request := rest[1 : 1+end]
	extra, ok := s.outcome(rest[end+2:])
	if !ok {
		return noStatus
	}
	s.event.UnixNano = at
	s.form = common
	if len(next) > 1 && isAddress(next) {
		s.form = vhostCommon
	}
	if len(extra) > 1 && extra[1] == '"' {
		s.form++ // combined, or vhostCombined
		s.behind(line, extra[2:])
	}
	if !s.request(request) {
		return noRequest
	}
	return isRequest
}

// who reads what stands first: a host and an address, an address, or a quoted list of them. next is
// the second field, which is an address where a virtual host stands first.
func (s *Source) who(line []byte) (rest, next []byte, r result) {
	quoted := 0
	if len(line) > 0 && line[0] == '"' {
		if quoted = closing(line[1:]) + 2; quoted == 1 {
			return nil, nil, fewFields
		}
	}
	i := bytes.IndexByte(line[quoted:], ' ') + quoted
	if i < max(quoted, 1) {
		return nil, nil, fewFields
	}
	j := bytes.IndexByte(line[i+1:], ' ')
	if j <= 0 {
		return nil, nil, fewFields
	}
	next = line[i+1 : i+1+j]
	if s.replay {
		s.event.Client = bytes.Trim(line[:i], `"`)
		if isAddress(next) {
			s.event.Client = next
		}
	}
	return line[i+j+2:], next, isRequest
}

// behind reads what stands behind the opening quote of the referrer: the agent, and the fields of
// ingress-nginx or Traefik.
func (s *Source) behind(line, b []byte) {
	i := closing(b)
	if i < 0 || len(b) < i+3 || b[i+1] != ' ' || b[i+2] != '"' {
		return
	}
	b = b[i+3:]
	s.agent(b)
	if line[len(line)-1] == '"' { // neither ends so
		return
	}
	if i = closing(b); i < 0 || i+1 >= len(b) || b[i+1] != ' ' {
		return
	}
	b = b[i+2:]
	switch {
	case s.form == combined && s.traefikTail(b):
		s.form = traefikCLF
	case s.form == combined && s.ingressTail(b):
		s.form = ingress
	}
}

// ingressTail reads `length seconds [upstream] ...`.
func (s *Source) ingressTail(b []byte) bool {
	if !s.may(ingress) {
		return false
	}
	i := bytes.IndexByte(b, ' ')
	if i < 1 {
		return false
	}
	length, b := number(b[:i]), b[i+1:]
	if i = bytes.IndexByte(b, ' '); i < 1 || len(b) < i+2 || b[i+1] != '[' || length < 0 {
		return false
	}
	d, ok := decimal(b[:i], second)
	if !ok {
		return false
	}
	s.event.RequestSize = length
	s.took(d, true)
	return true
}

// traefikTail reads `count "router" "server" 12ms`. Traefik's time is when the request began.
func (s *Source) traefikTail(b []byte) bool {
	if !s.may(traefikCLF) || len(b) < 4 || !bytes.HasSuffix(b, []byte("ms")) || !isDigit(b[0]) {
		return false
	}
	i := bytes.IndexByte(b, ' ')
	j := bytes.LastIndexByte(b, ' ')
	if i < 1 || number(b[:i]) < 0 || b[i+1] != '"' || b[j-1] != '"' {
		return false
	}
	d, ok := decimal(b[j+1:len(b)-2], millisecond)
	if ok {
		s.took(d, false)
	}
	return ok
}

// may tells whether the user's format allows a form.
func (s *Source) may(f form) bool { return s.only == nil || slices.Contains(s.only, f) }

// time reads a timestamp up to its bracket; rest begins behind the space that follows. A user name may
// hold brackets: where no timestamp follows one, the next is tried, up to the first quote.
func (s *Source) time(b []byte) (at int64, rest []byte, ok bool) {
	for {
		at, n, ok := s.clock.parse(b)
		if ok && len(b) > n+1 && b[n] == ']' && b[n+1] == ' ' {
			return at, b[n+2:], true
		}
		next := bytes.IndexByte(b, '[')
		if next < 0 || bytes.IndexByte(b[:next], '"') >= 0 {
			return 0, nil, false
		}
		b = b[next+1:]
	}
}

// closing finds the quote that ends a quoted field: one with an even number of backslashes before it.
func closing(b []byte) int {
	for from := 0; ; {
		i := bytes.IndexByte(b[from:], '"')
		if i < 0 {
			return -1
		}
		i += from
		slashes := 0
		for slashes < i-from && b[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
		from = i + 1
	}
}

// outcome reads ` status size` and gives what follows them.
func (s *Source) outcome(b []byte) (extra []byte, ok bool) {
	if len(b) < 4 || b[0] != ' ' {
		return nil, false
	}
	b = b[1:]
	switch {
	case b[0] == '-' && b[1] == ' ':
		s.event.Status = 0
		b = b[2:]
	case len(b) > 4 && isDigit(b[0]) && isDigit(b[1]) && isDigit(b[2]) && b[3] == ' ':
		s.event.Status = int(b[0]-'0')*100 + int(b[1]-'0')*10 + int(b[2]-'0')
		b = b[4:]
	default:
		return nil, false
	}
	end := bytes.IndexByte(b, ' ')
	if end < 0 {
		end = len(b)
	}
	if end == 0 {
		return nil, false
	}
	s.event.ResponseSize = number(b[:end])
	return b[end:], true
}

// number is a non-negative decimal, -1 for anything else.
func number(b []byte) int64 {
	if len(b) > 18 {
		return -1
	}
	var n int64
	for _, c := range b {
		if !isDigit(c) {
			return -1
		}
		n = n*10 + int64(c-'0')
	}
	return n
}

// request reads `METHOD target [HTTP/version]`; false when it is no request that could be sent.
func (s *Source) request(b []byte) bool {
	n := methodLen(b)
	if n == 0 || n+1 >= len(b) || b[n] != ' ' || b[n+1] == ' ' {
		return false
	}
	target := b[n+1:]
	if i := bytes.LastIndexByte(target, ' '); i >= 0 {
		// a target may hold spaces, but then only the version tells where it ends
		version := target[i+1:]
		if len(version) < 6 || string(version[:5]) != "HTTP/" {
			return false
		}
		target = bytes.TrimRight(target[:i], " ")
	}
	return s.target(b[:n], target)
}

// target takes a method and what stands behind it; false when it is no request that could be sent.
func (s *Source) target(method, target []byte) bool {
	path := input.Path(target)
	if len(method) == 0 || input.HasControl(path) {
		return false
	}
	s.event.Method, s.event.Path = method, path
	if s.replay {
		s.event.Query = query(target)
	}
	return true
}

// split takes a method and a target that stand apart in the line.
func (s *Source) split(method, target []byte) result {
	if len(target) == 0 || string(target) == "-" || len(method) != methodLen(method) || !s.target(method, target) {
		return noRequest
	}
	return isRequest
}

// query is what stands behind the question mark of a target; nil when there is none.
func query(target []byte) []byte {
	if i := bytes.IndexByte(target, '#'); i >= 0 {
		target = target[:i]
	}
	if i := bytes.IndexByte(target, '?'); i >= 0 {
		return target[i+1:]
	}
	return nil
}

// methodLen is the length of the method at the start of b.
func methodLen(b []byte) int {
	n := 0
	for n < len(b) && (b[n] >= 'A' && b[n] <= 'Z' || n > 0 && (b[n] == '-' || b[n] == '_')) {
		n++
	}
	return n
}

// isAddress tells whether a field looks like an IP address: the second field is one only where a
// virtual host stands before the client.
func isAddress(b []byte) bool {
	points := 0
	for _, c := range b {
		switch {
		case c == '.' || c == ':':
			points++
		case isDigit(c), c|0x20 >= 'a' && c|0x20 <= 'f':
		default:
			return false
		}
	}
	return points >= 2
}

func isDigit(c byte) bool { return c-'0' <= 9 }

// status reads a status that stands alone: three digits, or a dash or nothing for none.
func (s *Source) status(b []byte) bool {
	switch {
	case len(b) == 0, len(b) == 1 && (b[0] == '-' || b[0] == '0'):
		return true
	case len(b) == 3 && isDigit(b[0]) && isDigit(b[1]) && isDigit(b[2]):
		s.event.Status = int(b[0]-'0')*100 + int(b[1]-'0')*10 + int(b[2]-'0')
		return true
	}
	return false
}

// The units of durations, in nanoseconds.
const (
	second      = int64(time.Second)
	millisecond = int64(time.Millisecond)
	microsecond = int64(time.Microsecond)
)

// word cuts the first field off b, which ends at a space.
func word(b []byte) (field, rest []byte) {
	if i := bytes.IndexByte(b, ' '); i >= 0 {
		return b[:i], b[i+1:]
	}
	return b, nil
}

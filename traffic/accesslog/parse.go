package accesslog

import (
	"bytes"

	"seatrial/traffic/input"
)

// form is one of the formats of the grammar.
type form uint8

const (
	common form = iota
	combined
	vhostCommon
	vhostCombined
)

// formatNames are the names that Skips.Format shows, by form.
var formatNames = [...]string{"common", "combined", "vhost_common", "vhost_combined"}

// result is what a line turned out to be.
type result uint8

const (
	isRequest result = iota
	noRequest        // a well-formed line whose request cannot be sent
	fewFields
	noTime
	badTime
	noQuotes
	noStatus
)

// String is the reason that Skips.First shows.
func (r result) String() string {
	switch r {
	case fewFields:
		return "fewer fields than a log line has"
	case noTime:
		return "no [timestamp] after the user"
	case badTime:
		return "the timestamp is not of the form dd/Mon/yyyy:hh:mm:ss +zzzz"
	case noQuotes:
		return `no "request" after the timestamp`
	case noStatus:
		return "no status and size after the request"
	case noRequest:
		return "no usable request"
	}
	return "a request"
}

// parse reads one line into s.event. The grammar is
//
//	[host[:port]] address ident user [time] "request" status size ["referrer" "agent"] anything
//
// where the user may hold spaces and may be missing. What follows the size is never read: its meaning
// depends on a configuration that the log does not carry.
func (s *Source) parse(line []byte) (result, form) {
	i := bytes.IndexByte(line, ' ')
	if i <= 0 {
		return fewFields, 0
	}
	j := bytes.IndexByte(line[i+1:], ' ')
	if j <= 0 {
		return fewFields, 0
	}
	second := line[i+1 : i+1+j]
	rest := line[i+j+2:]
	open := bytes.IndexByte(rest, '[')
	if open < 0 || bytes.IndexByte(rest[:open], '"') >= 0 {
		return noTime, 0
	}
	at, rest, ok := s.time(rest[open+1:])
	if !ok {
		return badTime, 0
	}
	if len(rest) == 0 || rest[0] != '"' {
		return noQuotes, 0
	}
	end := closing(rest[1:])
	if end < 0 {
		return noQuotes, 0
	}
	request := rest[1 : 1+end]
	extra, ok := s.outcome(rest[end+2:])
	if !ok {
		return noStatus, 0
	}
	f := common
	if len(extra) > 1 && extra[1] == '"' {
		f = combined
	}
	if len(second) > 1 && isAddress(second) {
		f += vhostCommon
	}
	s.event.UnixNano, s.event.Duration, s.event.RequestSize = at, -1, -1
	if !s.request(request) {
		return noRequest, f
	}
	return isRequest, f
}

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
	n := 0
	for n < len(b) && (b[n] >= 'A' && b[n] <= 'Z' || n > 0 && (b[n] == '-' || b[n] == '_')) {
		n++
	}
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
	path := input.Path(target)
	if input.HasControl(path) {
		return false
	}
	s.event.Method, s.event.Path = b[:n], path
	return true
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

package accesslog

import "bytes"

// isBalancer tells a line of an AWS load balancer by its first two fields: its protocol and a time, or,
// of a classic one, the time alone.
func isBalancer(line []byte) bool {
	kind, rest := word(line)
	switch string(kind) {
	case "http", "https", "h2", "grpcs", "ws", "wss":
		return len(rest) > 20 && isDigit(rest[0]) && rest[4] == '-' && rest[10] == 'T'
	}
	return len(kind) > 20 && isDigit(kind[0]) && kind[4] == '-' && kind[10] == 'T' && isClassic(rest)
}

// isClassic tells what follows the time in a line of a classic load balancer: a name and a client with
// its port.
func isClassic(rest []byte) bool {
	_, rest = word(rest)
	client, rest := word(rest)
	i := bytes.LastIndexByte(client, ':')
	return i > 0 && isAddress(client[:i]) && number(client[i+1:]) >= 0 && len(rest) > 0
}

// alb reads
//
//	[type] time balancer client:port target:port seconds seconds seconds status status received sent "request" "agent" anything
//
// The three times are -1 where there is none. The time is when the answer was given.
func (s *Source) alb(line []byte) result {
	if !isBalancer(line) {
		return fewFields
	}
	rest := line
	if !isDigit(line[0]) {
		_, rest = word(line)
	}
	stamp, rest := word(rest)
	at, n, ok := s.clock.iso(stamp)
	if !ok || n != len(stamp) {
		return badTime
	}
	s.event.UnixNano = at
	_, rest = word(rest)
	client, rest := word(rest)
	if s.replay {
		s.event.Client = client[:max(0, bytes.LastIndexByte(client, ':'))]
	}
	_, rest = word(rest)
	d, rest, known := sum(rest)
	status, rest := word(rest)
	_, rest = word(rest)
	received, rest := word(rest)
	sent, rest := word(rest)
	if !s.status(status) || len(sent) == 0 {
		return noStatus
	}
	s.event.RequestSize, s.event.ResponseSize = size(received), size(sent)
	if known {
		s.took(d, true)
	}
	s.form = alb
	return s.quoted(rest)
}

// sum adds three numbers of seconds, all of which must be there.
func sum(b []byte) (total int64, rest []byte, known bool) {
	known = true
	for range 3 {
		var field []byte
		field, b = word(b)
		d, ok := decimal(field, second)
		known = known && ok
		total += d
	}
	return total, b, known
}

// quoted reads `"request" "agent"` at the start of b; the agent may be missing.
func (s *Source) quoted(b []byte) result {
	if len(b) == 0 || b[0] != '"' {
		return noQuotes
	}
	end := closing(b[1:])
	if end < 0 {
		return noQuotes
	}
	if rest := b[end+2:]; len(rest) > 2 && rest[0] == ' ' && rest[1] == '"' {
		s.agent(rest[2:])
	}
	if !s.request(b[1 : 1+end]) {
		return noRequest
	}
	return isRequest
}

// size is a number of bytes, -1 for none.
func size(b []byte) int64 {
	if len(b) == 0 {
		return -1
	}
	return number(b)
}

// haproxy reads
//
//	client:port [accept date] frontend backend/server a/b/c/d/total status bytes ... {headers} "request"
//
// with milliseconds. The date is when the request came.
func (s *Source) haproxy(line []byte) result {
	client, rest := word(line)
	if len(rest) < 2 || rest[0] != '[' {
		return noTime
	}
	at, n, ok := s.clock.parse(rest[1:])
	if !ok || len(rest) < n+3 || rest[n+1] != ']' || rest[n+2] != ' ' {
		return badTime
	}
	_, rest = word(rest[n+3:])
	_, rest = word(rest)
	timers, rest := word(rest)
	if bytes.Count(timers, []byte("/")) != 4 {
		return noTimers
	}
	status, rest := word(rest)
	bytesSent, rest := word(rest)
	open := bytes.IndexByte(rest, '"')
	if open < 0 {
		return noQuotes
	}
	if string(status) != "-1" && !s.status(status) || len(bytesSent) == 0 {
		return noStatus
	}
	s.event.UnixNano = at
	s.event.ResponseSize = number(bytes.TrimPrefix(bytesSent, []byte("+")))
	if s.replay {
		s.event.Client = client[:max(0, bytes.LastIndexByte(client, ':'))]
	}
	total := timers[bytes.LastIndexByte(timers, '/')+1:]
	if d, ok := decimal(bytes.TrimPrefix(total, []byte("+")), millisecond); ok {
		s.took(d, false)
	}
	s.captured(rest[:open])
	s.form = haproxy
	return s.quoted(rest[open:])
}

// captured looks for Seatrial among the captured headers, {one|two}.
func (s *Source) captured(b []byte) {
	for {
		i := bytes.IndexAny(b, "{|")
		if i < 0 {
			return
		}
		b = b[i+1:]
		s.agent(b)
	}
}

// envoyText reads Envoy's default format, and Istio's, which has more fields between flags and sizes:
//
//	[start] "METHOD path protocol" status flags ... received sent duration time "forwarded" "agent" ...
//
// with the duration in milliseconds.
func (s *Source) envoyText(line []byte) result {
	if len(line) < 20 || line[0] != '[' {
		return noTime
	}
	at, n, ok := s.clock.iso(line[1:])
	if !ok || len(line) < n+5 || line[n+1] != ']' || line[n+2] != ' ' || line[n+3] != '"' {
		return badTime
	}
	rest := line[n+4:]
	end := closing(rest)
	if end < 0 || len(rest) < end+2 {
		return noQuotes
	}
	request := rest[:end]
	status, rest := word(rest[end+2:])
	_, rest = word(rest) // flags
	rest = pastWords(rest)
	received, rest := word(rest)
	sent, rest := word(rest)
	took, rest := word(rest)
	if !s.status(status) || len(sent) == 0 {
		return noStatus
	}
	s.event.UnixNano = at
	s.event.RequestSize, s.event.ResponseSize = size(received), size(sent)
	if d, ok := decimal(took, millisecond); ok {
		s.took(d, false)
	}
	_, rest = word(rest)
	s.forwarded(rest)
	s.form = envoyText
	if !s.request(request) {
		return noRequest
	}
	return isRequest
}

// pastWords passes over the fields that Istio writes before the sizes: words and quoted texts.
func pastWords(b []byte) []byte {
	for range 4 {
		if len(b) == 0 || isDigit(b[0]) {
			break
		}
		if b[0] == '"' {
			end := closing(b[1:])
			if end < 0 {
				break
			}
			b = bytes.TrimPrefix(b[end+2:], []byte(" "))
			continue
		}
		_, b = word(b)
	}
	return b
}

// forwarded reads `"addresses" "agent"`.
func (s *Source) forwarded(b []byte) {
	if len(b) < 2 || b[0] != '"' {
		return
	}
	end := closing(b[1:])
	if end < 0 {
		return
	}
	if s.replay && string(b[1:1+end]) != "-" {
		s.event.Client = b[1 : 1+end]
	}
	if rest := b[end+2:]; len(rest) > 2 && rest[1] == '"' {
		s.agent(rest[2:])
	}
}

// npm reads the two formats of Nginx Proxy Manager:
//
//	[time] cache upstream status - METHOD scheme host "path" [Client a] [Length n] [Gzip r] [Sent-to s] "agent" "referrer"
//	[time] status - METHOD scheme host "path" [Client a] [Length n] [Gzip r] "agent" "referrer"
func (s *Source) npm(line []byte) result {
	if len(line) == 0 || line[0] != '[' {
		return noTime
	}
	at, n, ok := s.clock.parse(line[1:])
	if !ok || len(line) < n+3 || line[n+1] != ']' {
		return badTime
	}
	dash := bytes.Index(line[n+2:], []byte(" - "))
	if dash < 0 {
		return noStatus
	}
	status := line[n+2 : n+2+dash]
	rest := line[n+2+dash+3:]
	if string(status) == "" { // the cache's word is a dash, which is not the one that ends the statuses
		if dash = bytes.Index(rest, []byte(" - ")); dash < 0 {
			return noStatus
		}
		status, rest = rest[:dash], rest[dash+3:]
	}
	status = status[bytes.LastIndexByte(status, ' ')+1:]
	method, rest := word(rest)
	_, rest = word(rest)
	_, rest = word(rest)
	if len(rest) == 0 || rest[0] != '"' {
		return noQuotes
	}
	end := closing(rest[1:])
	if end < 0 {
		return noQuotes
	}
	target, rest := rest[1:1+end], rest[end+2:]
	if !s.status(status) {
		return noStatus
	}
	s.event.UnixNano = at
	s.event.ResponseSize = size(bracket(rest, "[Length "))
	if s.replay {
		s.event.Client = bracket(rest, "[Client ")
	}
	if i := bytes.IndexByte(rest, '"'); i >= 0 {
		s.agent(rest[i+1:])
	}
	s.form = proxyManager
	return s.split(method, target)
}

// bracket is what stands between a text such as "[Length " and the bracket that closes it; nil when it
// is not there.
func bracket(b []byte, open string) []byte {
	i := bytes.Index(b, []byte(open))
	if i < 0 {
		return nil
	}
	b = b[i+len(open):]
	if i = bytes.IndexByte(b, ']'); i < 0 {
		return nil
	}
	return b[:i]
}

// uwsgi reads
//
//	[pid: ...] address (user) {vars} [Sun Mar 13 22:49:12 2016] METHOD target => generated N bytes in N msecs (HTTP/1.1 200) ...
//
// The time, without a zone, is when the request came.
func (s *Source) uwsgi(line []byte) result {
	generated := bytes.Index(line, []byte(" => generated "))
	if generated < 0 {
		return fewFields
	}
	head, tail := line[:generated], line[generated+len(" => generated "):]
	open := bytes.Index(head, []byte("} ["))
	if open < 0 {
		return noTime
	}
	if s.replay {
		if i := bytes.Index(head, []byte("] ")); i >= 0 {
			s.event.Client, _ = word(head[i+2:])
		}
	}
	head = head[open+3:]
	at, ok := s.ctime(head)
	if !ok {
		return badTime
	}
	s.event.UnixNano = at
	length, tail := word(tail)
	_, tail = word(tail) // bytes
	_, tail = word(tail) // in
	took, tail := word(tail)
	unit, tail := word(tail)
	_, tail = word(tail) // (HTTP/1.1
	status, _, ok := bytes.Cut(tail, []byte(")"))
	if !ok || !s.status(status) {
		return noStatus
	}
	s.event.ResponseSize = size(length)
	per := millisecond
	if string(unit) == "micros" {
		per = microsecond
	}
	if d, ok := decimal(took, per); ok {
		s.took(d, false)
	}
	s.form = uwsgi
	method, target := word(head[len("Sun Mar 13 22:49:12 2016] "):])
	return s.split(method, target)
}

// ctime reads `Sun Mar 13 22:49:12 2016] ` at the start of b.
func (s *Source) ctime(b []byte) (int64, bool) {
	const like = "Sun Mar 13 22:49:12 2016] "
	if len(b) < len(like) || b[3] != ' ' || b[7] != ' ' || b[10] != ' ' || b[19] != ' ' || b[24] != ']' {
		return 0, false
	}
	m := month(b[4:7])
	day := b[8:10]
	if m == 0 {
		return 0, false
	}
	stamp := [...]byte{b[20], b[21], b[22], b[23], '-', '0' + byte(m)/10, '0' + byte(m)%10, '-', day[0], day[1],
		'T', b[11], b[12], b[13], b[14], b[15], b[16], b[17], b[18]}
	if day[0] == ' ' {
		stamp[8] = '0'
	}
	at, _, ok := s.clock.iso(stamp[:])
	return at, ok
}

// zoraxy reads
//
//	2025/05/01 07:57:03 [2025-05-01 07:57:03.150624] [router:...] [origin:...] [client: a] [useragent: u] METHOD target status
func (s *Source) zoraxy(line []byte) result {
	open := bytes.IndexByte(line, '[')
	if open < 0 {
		return noTime
	}
	at, n, ok := s.clock.iso(line[open+1:])
	if !ok || len(line) < open+n+2 || line[open+n+1] != ']' {
		return badTime
	}
	agent := bytes.Index(line, []byte("[useragent: "))
	end := bytes.LastIndex(line, []byte("] "))
	if agent < 0 || end < agent {
		return fewFields
	}
	s.event.UnixNano = at
	s.agent(line[agent+len("[useragent: "):])
	if s.replay {
		s.event.Client = bracket(line, "[client: ")
	}
	rest := line[end+2:]
	i := bytes.LastIndexByte(rest, ' ')
	if i < 0 || !s.status(rest[i+1:]) {
		return noStatus
	}
	s.form = zoraxy
	method, target := word(rest[:i])
	return s.split(method, target)
}

package otlp

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"seatrial/traffic/input"
)

// attribute is an attribute of a span that decides what kind of request it was.
type attribute uint8

const (
	otherAttribute attribute = iota
	requestMethod
	oldMethod
	originalMethod
	httpRoute
	urlPath
	httpTarget
	urlFull
	httpURL
	newStatus
	oldStatus
	rpcSystem
	messagingSystem
	faasTrigger
	newAgent
	oldAgent
	urlQuery // this and what follows is for a replay only
	clientAddress
	oldClientIP
	oldPeerIP
	oldSocketPeer
	peerAddress
	attributes // how many there are
)

// attributeOf knows both generations of the semantic conventions.
func attributeOf(key []byte) attribute {
	if len(key) < 8 || len(key) > 28 {
		return otherAttribute
	}
	switch string(key) {
	case "http.request.method":
		return requestMethod
	case "http.method":
		return oldMethod
	case "http.request.method_original":
		return originalMethod
	case "http.route":
		return httpRoute
	case "url.path":
		return urlPath
	case "http.target":
		return httpTarget
	case "url.full":
		return urlFull
	case "http.url":
		return httpURL
	case "http.response.status_code":
		return newStatus
	case "http.status_code":
		return oldStatus
	case "rpc.system":
		return rpcSystem
	case "messaging.system":
		return messagingSystem
	case "faas.trigger":
		return faasTrigger
	case "user_agent.original":
		return newAgent
	case "http.user_agent":
		return oldAgent
	case "url.query":
		return urlQuery
	case "client.address":
		return clientAddress
	case "http.client_ip":
		return oldClientIP
	case "net.peer.ip":
		return oldPeerIP
	case "net.sock.peer.addr":
		return oldSocketPeer
	case "network.peer.address":
		return peerAddress
	}
	return otherAttribute
}

// extent is a piece of a span's scratch memory.
type extent struct{ from, to int }

// span is one span as read. Its texts lie in scratch, which the next span reuses.
type span struct {
	kind       kind
	kindText   extent // of an unknown kind
	start, end uint64 // Unix nanoseconds; 0 when absent or unreadable
	signal     signal // what it is instead of a span, as far as protobuf shows that
	set        [attributes]extent
	scratch    []byte
	replay     bool // the attributes for a replay are kept as well
}

func (p *span) reset() {
	*p = span{scratch: p.scratch[:0], replay: p.replay}
}

// attributeOf knows the keys that are kept: what is for a replay only is dropped here without one.
func (p *span) attributeOf(key []byte) attribute {
	a := attributeOf(key)
	if a >= urlQuery && !p.replay {
		return otherAttribute
	}
	return a
}

// first is the first of some attributes that is not empty.
func (p *span) first(of ...attribute) []byte {
	for _, a := range of {
		if text := p.get(a); len(text) > 0 {
			return text
		}
	}
	return nil
}

func (p *span) get(a attribute) []byte { return p.scratch[p.set[a].from:p.set[a].to] }

func (p *span) keep(b []byte) extent {
	from := len(p.scratch)
	p.scratch = append(p.scratch, b...)
	return extent{from, len(p.scratch)}
}

// kind is a span's kind, by the numbers of the protocol; unknown kinds share one number.
type kind uint8

const (
	unspecified kind = iota
	internal
	server
	client
	producer
	consumer
	unknown
	kinds // how many there are
)

// kindOf reads the kind's names and numbers, the latter also as text. Others are not guessed at.
func kindOf(text []byte) kind {
	switch string(text) {
	case "SPAN_KIND_UNSPECIFIED", "0", "null", "":
		return unspecified
	case "SPAN_KIND_INTERNAL", "1":
		return internal
	case "SPAN_KIND_SERVER", "2":
		return server
	case "SPAN_KIND_CLIENT", "3":
		return client
	case "SPAN_KIND_PRODUCER", "4":
		return producer
	case "SPAN_KIND_CONSUMER", "5":
		return consumer
	}
	return unknown
}

// span reads the span whose opening brace is consumed.
func (s *scanner) span(p *span) bool {
	p.reset()
	for first := true; ; first = false {
		c, ok := s.member(first)
		if !ok || c == '}' {
			return ok
		}
		key, ok := s.key()
		if !ok {
			return false
		}
		switch string(key) {
		case "kind":
			ok = s.colon() && s.kind(p)
		case "startTimeUnixNano", "start_time_unix_nano":
			ok = s.colon() && s.time(&p.start)
		case "endTimeUnixNano", "end_time_unix_nano":
			ok = s.colon() && s.time(&p.end)
		case "attributes":
			ok = s.colon() && s.attributes(p)
		default:
			ok = s.colon() && s.skip(spanDepth)
		}
		if !ok {
			return false
		}
	}
}

// spanDepth is how deep a span's values lie in a document.
const spanDepth = 8

// key reads a key whose opening quote is consumed. One with escapes is resolved, since it may be known.
func (s *scanner) key() ([]byte, bool) {
	raw, escaped, long, ok := s.text()
	if !ok || long {
		return nil, ok
	}
	if escaped {
		raw = unescape(nil, raw)
	}
	return raw, true
}

func (s *scanner) colon() bool { return s.want(':', "a key without a colon") }

func (s *scanner) kind(p *span) bool {
	c, ok := s.space()
	if !ok {
		return s.bad("the document is cut short")
	}
	var text []byte
	switch c {
	case '{', '[':
		p.kind = unknown
		return s.skip(spanDepth)
	case '"':
		s.r++
		var long bool
		if text, _, long, ok = s.text(); !ok || long {
			p.kind = unknown
			return ok
		}
	default:
		if text, ok = s.word(); !ok {
			return false
		}
	}
	if p.kind = kindOf(text); p.kind == unknown {
		p.kindText = p.keep(text)
	}
	return true
}

// time reads a timestamp: a number, the same as text, or an object of two 32-bit halves. What is
// unreadable is 0, as is what is absent.
func (s *scanner) time(at *uint64) bool {
	c, ok := s.space()
	if !ok {
		return s.bad("the document is cut short")
	}
	switch c {
	case '"':
		s.r++
		raw, _, _, ok := s.text()
		*at, _ = unsigned(bytes.TrimSpace(raw))
		return ok
	case '{':
		s.r++
		return s.halves(at)
	case '[':
		*at = 0
		return s.skip(spanDepth)
	}
	word, ok := s.word()
	if !ok {
		return false
	}
	*at = wholeNumber(word)
	return true
}

// unsigned reads decimal digits, exactly; 0 when they are none or past 63 bits.
func unsigned(b []byte) (uint64, bool) {
	if len(b) == 0 || len(b) > 19 {
		return 0, false
	}
	var n uint64
	for _, c := range b {
		if c-'0' > 9 {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	if n > math.MaxInt64 {
		return 0, false
	}
	return n, true
}

// wholeNumber reads a JSON number: exactly when it is written as an integer, else rounded; 0 for what
// is no time.
func wholeNumber(word []byte) uint64 {
	if n, ok := unsigned(word); ok {
		return n
	}
	if f, err := strconv.ParseFloat(string(word), 64); err == nil && f >= 0 && f < math.MaxInt64 {
		return uint64(f)
	}
	return 0
}

// halves reads {"low": L, "high": H}, as one release of an SDK wrote fixed64; the halves may be signed.
func (s *scanner) halves(at *uint64) bool {
	var low, high int64
	var known [2]bool
	for first := true; ; first = false {
		c, ok := s.member(first)
		if !ok {
			return false
		}
		if c == '}' {
			break
		}
		key, ok := s.key()
		if !ok {
			return false
		}
		isLow, isHigh := string(key) == "low", string(key) == "high"
		if !s.colon() {
			return false
		}
		if c, ok = s.space(); !ok {
			return s.bad("the document is cut short")
		}
		if !isLow && !isHigh || c != '-' && c-'0' > 9 {
			if !s.skip(spanDepth) {
				return false
			}
			continue
		}
		word, ok := s.word()
		if !ok {
			return false
		}
		n, err := strconv.ParseInt(string(word), 10, 64)
		fits := err == nil && n >= math.MinInt32 && n <= math.MaxUint32
		if isLow {
			low, known[0] = n, fits
		} else {
			high, known[1] = n, fits
		}
	}
	*at = 0
	if whole := uint64(uint32(high))<<32 | uint64(uint32(low)); known == [2]bool{true, true} && whole <= math.MaxInt64 {
		*at = whole
	}
	return true
}

// attributes reads the list of a span's attributes. Of two equal keys the last wins.
func (s *scanner) attributes(p *span) bool {
	c, ok := s.space()
	if !ok {
		return s.bad("the document is cut short")
	}
	if c != '[' {
		return s.skip(spanDepth)
	}
	s.r++
	for first := true; ; first = false {
		end, ok := s.element(first)
		if !ok || end {
			return ok
		}
		if s.buf[s.r] != '{' {
			if !s.skip(spanDepth) {
				return false
			}
			continue
		}
		s.r++
		if !s.attribute(p) {
			return false
		}
	}
}

// attribute reads one {"key": ..., "value": ...}, in either order.
func (s *scanner) attribute(p *span) bool {
	which, named := otherAttribute, false
	var value extent
	for first := true; ; first = false {
		c, ok := s.member(first)
		if !ok {
			return false
		}
		if c == '}' {
			break
		}
		key, ok := s.key()
		if !ok {
			return false
		}
		isKey, isValue := string(key) == "key", string(key) == "value"
		if !s.colon() {
			return false
		}
		if c, ok = s.space(); !ok {
			return s.bad("the document is cut short")
		}
		switch {
		case isKey && c == '"':
			s.r++
			name, ok := s.key()
			if !ok {
				return false
			}
			which, named = p.attributeOf(name), true
		case isValue && c == '{' && (!named || which != otherAttribute):
			s.r++
			if !s.value(p, &value) {
				return false
			}
		default:
			if !s.skip(spanDepth) {
				return false
			}
		}
	}
	if which != otherAttribute {
		p.set[which] = value
	}
	return true
}

// value reads an AnyValue whose brace is consumed: the text of a string, a number or a boolean. Texts
// longer than maxText are as good as absent.
func (s *scanner) value(p *span, value *extent) bool {
	for first := true; ; first = false {
		c, ok := s.member(first)
		if !ok || c == '}' {
			return ok
		}
		key, ok := s.key()
		if !ok {
			return false
		}
		scalar := isScalar(key)
		if !s.colon() {
			return false
		}
		if c, ok = s.space(); !ok {
			return s.bad("the document is cut short")
		}
		if !scalar || c == '{' || c == '[' {
			if !s.skip(spanDepth) {
				return false
			}
			continue
		}
		if !s.scalar(p, c, value) {
			return false
		}
	}
}

func isScalar(key []byte) bool {
	switch string(key) {
	case "stringValue", "string_value", "intValue", "int_value", "boolValue", "bool_value", "doubleValue", "double_value":
		return true
	}
	return false
}

// maxText is the longest text of an attribute, in bytes, that is kept.
const maxText = 64 << 10

func (s *scanner) scalar(p *span, first byte, value *extent) bool {
	if first != '"' {
		word, ok := s.word()
		if ok && string(word) != "null" {
			*value = p.keep(word)
		}
		return ok
	}
	s.r++
	raw, escaped, long, ok := s.text()
	switch {
	case !ok:
		return false
	case long || len(raw) > maxText:
		*value = extent{}
	case escaped:
		from := len(p.scratch)
		p.scratch = unescape(p.scratch, raw)
		*value = extent{from, len(p.scratch)}
	default:
		*value = p.keep(raw)
	}
	return true
}

// unescape appends raw with its JSON escapes resolved (RFC 8259, 7).
func unescape(to, raw []byte) []byte {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' || i+1 >= len(raw) {
			to = append(to, raw[i])
			continue
		}
		i++
		switch raw[i] {
		case 'n':
			to = append(to, '\n')
		case 't':
			to = append(to, '\t')
		case 'r':
			to = append(to, '\r')
		case 'b':
			to = append(to, '\b')
		case 'f':
			to = append(to, '\f')
		case 'u':
			r := hex4(raw[i+1:])
			i += min(4, len(raw)-i-1)
			if utf16.IsSurrogate(r) && i+2 < len(raw) && raw[i+1] == '\\' && raw[i+2] == 'u' {
				if pair := utf16.DecodeRune(r, hex4(raw[i+3:])); pair != utf8.RuneError {
					r = pair
					i += min(6, len(raw)-i-1)
				}
			}
			to = utf8.AppendRune(to, r)
		default:
			to = append(to, raw[i])
		}
	}
	return to
}

// hex4 reads four hexadecimal digits; utf8.RuneError when they are none.
func hex4(b []byte) rune {
	if len(b) < 4 {
		return utf8.RuneError
	}
	n, err := strconv.ParseUint(string(b[:4]), 16, 32)
	if err != nil {
		return utf8.RuneError
	}
	return rune(n)
}

// path is what the span tells of the path that was asked for, query and fragment cut; nil when nothing.
func (p *span) path() []byte {
	for _, a := range [...]attribute{urlPath, httpTarget, urlFull, httpURL} {
		if target := p.get(a); len(target) > 0 {
			return input.Path(target)
		}
	}
	return nil
}

// query is the query that was asked for, without its question mark; nil without a replay.
func (p *span) query() []byte {
	if !p.replay {
		return nil
	}
	if q := bytes.TrimPrefix(p.get(urlQuery), []byte("?")); len(q) > 0 {
		return uptoFragment(q)
	}
	for _, a := range [...]attribute{httpTarget, urlFull, httpURL} {
		if _, q, _ := bytes.Cut(uptoFragment(p.get(a)), []byte("?")); len(q) > 0 {
			return q
		}
	}
	return nil
}

func uptoFragment(b []byte) []byte {
	if i := bytes.IndexByte(b, '#'); i >= 0 {
		return b[:i]
	}
	return b
}

// client is what tells clients apart; nil without a replay.
func (p *span) client() []byte {
	return p.first(clientAddress, oldClientIP, oldPeerIP, oldSocketPeer, peerAddress)
}

// status is the response status, 0 when there is none between 100 and 999.
func (p *span) status() int {
	text := p.get(newStatus)
	if len(text) == 0 {
		text = p.get(oldStatus)
	}
	if len(text) < 3 || len(text) > 3 && text[3] != '.' {
		return 0
	}
	n, ok := unsigned(text[:3])
	if !ok || n < 100 {
		return 0
	}
	return int(n)
}

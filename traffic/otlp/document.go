package otlp

import (
	"bytes"

	"seatrial/fault"
	"seatrial/traffic"
	"seatrial/traffic/input"
)

// place is a container above the spans of a document.
type place uint8

const (
	inDocuments     place = iota // an array of documents
	inDocument                   // an object
	inResourceSpans              // an array
	inResource                   // an object
	inScopeSpans                 // an array
	inScope                      // an object
	inSpans                      // an array
)

// frame is a container that is open.
type frame struct {
	place place
	begun bool // something of it was read
	taken bool // its list was met: of two spellings the first counts
}

// signal is what a document without spans holds.
type signal uint8

const (
	noSignal signal = iota
	logs
	metrics
	profiles
	signals // how many there are
)

// signalNames are the keys of Skips.Notes.
var signalNames = [signals]string{"document without spans", "document of logs", "document of metrics", "document of profiles"}

// key is a key that a container may hold.
type key uint8

const (
	otherKey key = iota
	resourcesKey
	scopesKey
	spansKey
	logsKey
	metricsKey
	profilesKey
)

// documentKey knows the keys that a document may have at its top, in every spelling.
func documentKey(k []byte) key {
	switch string(k) {
	case "resourceSpans", "resource_spans", "batches":
		return resourcesKey
	case "resourceLogs", "resource_logs":
		return logsKey
	case "resourceMetrics", "resource_metrics":
		return metricsKey
	case "resourceProfiles", "resource_profiles":
		return profilesKey
	}
	return scopeKey(k)
}

func scopeKey(k []byte) key {
	switch string(k) {
	case "scopeSpans", "scope_spans", "instrumentationLibrarySpans", "instrumentation_library_spans":
		return scopesKey
	}
	return otherKey
}

// step reads on to the next container's border, or one span. It ends a document, an input, or all.
func (s *Source) step() {
	if !s.opened {
		s.openInput()
		return
	}
	if len(s.stack) == 0 {
		s.begin()
		return
	}
	f := &s.stack[len(s.stack)-1]
	ok := false
	switch f.place {
	case inDocuments, inResourceSpans, inScopeSpans, inSpans:
		ok = s.stepArray(f)
	default:
		ok = s.stepObject(f)
	}
	switch {
	case !ok && s.failed():
		s.finish(s.in.set.Err())
	case !ok:
		s.damage(s.in.why)
	case len(s.stack) == 0:
		s.sound()
	}
}

// failed tells whether reading failed and all that was read before is used up.
func (s *Source) failed() bool { return s.in.r == s.in.w && s.in.set.Err() != nil }

// finish ends reading.
func (s *Source) finish(err error) {
	s.done = true
	s.skips.EndInput(s.input)
	switch s.err = err; {
	case err != nil:
	case s.skips.Parsed == 0:
		s.err = s.nothing()
	case s.Counts().Spanless == s.skips.Parsed:
		s.err = s.foreign()
	}
}

// sniff is how many bytes of an input are looked at to tell JSON from protobuf.
const sniff = 512

// openInput goes on to the next input and refuses framings that are not read.
func (s *Source) openInput() {
	set := s.in.set
	if !set.Next() {
		s.finish(set.Err())
		return
	}
	s.opened = true
	s.skips.EndInput(s.input)
	s.input = set.Name()
	s.in.r, s.in.w, s.in.ended, s.in.line, s.in.why = 0, 0, false, 1, ""
	for s.in.w < sniff {
		if _, ok := s.in.more(0); !ok {
			break
		}
	}
	if bytes.HasPrefix(s.in.buf[:s.in.w], []byte("\xef\xbb\xbf")) {
		s.in.r = 3 // a byte order mark
	}
	if what := framing(s.in.buf[s.in.r:min(s.in.w, sniff)]); what != "" {
		s.finish(fault.New(fault.TRF002, "%s is %s; this build reads OTLP/JSON", set.Name(), what).
			WithNext("Let the collector's file exporter write `format: json`, plain or with gzip or zstd over the whole file."))
	}
}

// framing names a framing that is not read, by an input's first bytes; empty for JSON and for text.
// Four or more NULs are the padding that log rotation leaves; fewer are the head of a length prefix.
func framing(head []byte) string {
	body := bytes.TrimLeft(head, "\x00")
	zeros := len(head) - len(body)
	if zeros == 0 || zeros >= 4 {
		if len(body) > 0 && (body[0] == '{' || body[0] == '[') {
			return ""
		}
		for _, c := range body {
			if c < 0x20 && c != '\t' && c != '\n' && c != '\r' && c != 0 {
				return "protobuf or another binary format"
			}
		}
		return ""
	}
	rest := head[min(4, len(head)):]
	switch {
	case bytes.HasPrefix(rest, []byte("\x28\xb5\x2f\xfd")):
		return "a sequence of length-prefixed zstd frames (the file exporter's compression without nativeCompression)"
	case bytes.HasPrefix(rest, []byte("{")):
		return "a sequence of length-prefixed JSON messages"
	}
	return "a sequence of length-prefixed protobuf messages"
}

// begin starts the next document, or ends the input.
func (s *Source) begin() {
	in := &s.in
	c, ok := s.between()
	if !ok && s.failed() {
		s.finish(in.set.Err())
		return
	}
	if !ok {
		s.opened = false
		if problem := in.set.Problem(); problem != "" {
			s.notes[problem]++
			s.refuse(problem, in.line)
		}
		return
	}
	s.doc = document{line: in.line}
	in.why, in.fresh, in.inList = "", false, false
	switch c {
	case '{':
		in.r++
		s.push(inDocument)
	case '[':
		in.r++
		in.inList = true
		s.push(inDocuments)
	default:
		s.damage("the line starts no JSON object")
	}
}

// between passes what may stand between documents: white space and the NULs of rotated files.
func (s *Source) between() (byte, bool) {
	in := &s.in
	for {
		for ; in.r < in.w; in.r++ {
			switch c := in.buf[in.r]; c {
			case '\n':
				in.line++
			case ' ', '\t', '\r', 0:
			default:
				return c, true
			}
		}
		if _, ok := in.more(in.r); !ok {
			return 0, false
		}
	}
}

func (s *Source) push(p place) bool {
	if len(s.stack) >= maxDepth {
		return s.in.bad("values are nested too deep")
	}
	s.stack = append(s.stack, frame{place: p})
	return true
}

func (s *Source) pop() bool {
	s.stack = s.stack[:len(s.stack)-1]
	return true
}

// stepArray reads an array's next element or its end.
func (s *Source) stepArray(f *frame) bool {
	in := &s.in
	end, ok := in.element(!f.begun)
	f.begun = true
	if !ok {
		return false
	}
	if end {
		return s.pop()
	}
	isObject := in.buf[in.r] == '{'
	switch {
	case f.place == inDocuments && in.buf[in.r] == '[':
		in.r++
		return s.push(inDocuments)
	case f.place == inDocuments && !isObject:
		return in.bad("a list of documents holds something else")
	case !isObject:
		return in.skip(len(s.stack))
	}
	in.r++
	switch f.place {
	case inSpans:
		return in.span(&s.span) && s.take()
	case inResourceSpans:
		s.doc.hasRS = true
	}
	return s.push(f.place + 1)
}

// stepObject reads an object's next member or its end.
func (s *Source) stepObject(f *frame) bool {
	in := &s.in
	c, ok := in.member(!f.begun)
	f.begun = true
	if !ok {
		return false
	}
	if c == '}' {
		return s.pop()
	}
	k, ok := in.key()
	if !ok {
		return false
	}
	known := s.known(f, k)
	if !in.colon() {
		return false
	}
	if c, ok = in.space(); !ok {
		return in.bad("the document is cut short")
	}
	if known == otherKey || c != '[' || f.taken {
		return in.skip(len(s.stack))
	}
	f.taken = true
	in.r++
	switch known {
	case resourcesKey:
		return s.push(inResourceSpans)
	case scopesKey:
		s.doc.hasRS = true
		return s.push(inScopeSpans)
	}
	return s.push(inSpans)
}

// known tells which of a container's keys leads to spans, and remembers other signals.
func (s *Source) known(f *frame, name []byte) key {
	switch f.place {
	case inDocument:
		k := documentKey(name)
		switch k {
		case logsKey:
			s.doc.signal = logs
		case metricsKey:
			s.doc.signal = metrics
		case profilesKey:
			s.doc.signal = profiles
		default:
			return k
		}
	case inResource:
		return scopeKey(name)
	case inScope:
		if string(name) == "spans" {
			return spansKey
		}
	}
	return otherKey
}

// sound ends a document that was read whole.
func (s *Source) sound() {
	s.skips.Parsed++
	if !s.doc.hasRS {
		s.notes[signalNames[s.doc.signal]]++
	}
	s.commit()
}

// commit makes what was counted and held of the document stand.
func (s *Source) commit() {
	s.total.add(&s.doc.tally)
	s.doc.tally = tally{}
	for i := range s.unknown {
		s.unknown[i].total += s.unknown[i].pending
		s.unknown[i].pending = 0
	}
	s.ready = true
}

// damage ends a document that does not parse, and reading goes on at the next line. Of the document
// nothing is taken but what was given out before.
func (s *Source) damage(why string) {
	s.stack = s.stack[:0]
	s.refuse(why, s.doc.line)
	if s.doc.flushed {
		s.notes["damaged document of which the first spans were taken"]++
	}
	s.held, s.texts = s.held[:0], s.texts[:0]
	for i := range s.unknown {
		s.unknown[i].pending = 0
	}
	if problem := s.in.set.Problem(); problem != "" && s.in.ended && s.in.r == s.in.w {
		s.notes[problem]++ // the document is the one that was lost: it is told once
		s.opened = false
		return
	}
	if !s.in.fresh {
		s.nextLine()
	}
}

// nextLine passes the rest of the line.
func (s *Source) nextLine() {
	in := &s.in
	for {
		if i := bytes.IndexByte(in.buf[in.r:in.w], '\n'); i >= 0 {
			in.r += i + 1
			in.line++
			return
		}
		in.r = in.w
		if _, ok := in.more(in.r); !ok {
			return
		}
	}
}

// refuse counts an unparsable document.
func (s *Source) refuse(why string, line int64) {
	s.skips.Unparsable++
	if len(s.skips.First) < traffic.MaxFirst {
		s.skips.First = append(s.skips.First, traffic.Skip{Input: s.in.set.Name(), Line: line, Reason: why})
	}
}

// take counts the span that was read, and holds it if it is an event.
func (s *Source) take() bool {
	p := &s.span
	t := &s.doc.tally
	t.kinds[p.kind]++
	why := s.sort(p)
	t.reasons[why]++
	if why == unknownKind {
		s.name(p)
	}
	return true
}

// sort tells what becomes of a span.
func (s *Source) sort(p *span) reason {
	switch p.kind {
	case unspecified:
		return unspecifiedKind
	case internal:
		return internalSpan
	case client:
		return clientSpan
	case producer:
		return producerSpan
	case consumer:
		return consumerSpan
	case unknown:
		return unknownKind
	}
	method := p.get(requestMethod)
	if len(method) == 0 {
		method = p.get(oldMethod)
	}
	switch {
	case len(p.get(rpcSystem)) > 0:
		return notHTTPRPC
	case len(method) > 0:
		return s.request(p, method)
	case len(p.get(messagingSystem)) > 0:
		return notHTTPMessaging
	case len(p.get(faasTrigger)) > 0:
		return notHTTPFaaS
	}
	return notHTTP
}

// request holds a server span of HTTP as an event.
func (s *Source) request(p *span, method []byte) reason {
	t := &s.doc.tally
	t.http++
	duration := int64(-1)
	if p.start > 0 && p.end >= p.start {
		duration = int64(p.end - p.start)
	} else {
		t.noTime++
	}
	if string(method) == "_OTHER" { // the convention for a method that the instrumentation does not know
		method = p.get(originalMethod)
	}
	route, path := p.get(httpRoute), p.path()
	switch {
	case !upper(method):
		return noMethod
	case len(route) == 0 && len(path) == 0:
		return noRoute
	case input.HasControl(route) || input.HasControl(path):
		return badText
	}
	s.hold(heldEvent{
		at: int64(p.start), duration: duration, status: p.status(),
		method: s.keep(method), route: s.keep(route), path: s.keep(path),
	})
	return isEvent
}

func (s *Source) keep(b []byte) extent {
	from := len(s.texts)
	s.texts = append(s.texts, b...)
	return extent{from, len(s.texts)}
}

// hold keeps an event until its document is found sound, or until too much is held.
func (s *Source) hold(h heldEvent) {
	s.held = append(s.held, h)
	if len(s.held) >= maxHeld || len(s.texts) >= maxHeldBytes {
		s.doc.flushed = true
		s.commit()
	}
}

// upper makes a method upper case in place; false when it is no method that could be sent.
func upper(method []byte) bool {
	for i, c := range method {
		switch {
		case c >= 'a' && c <= 'z':
			method[i] = c - 'a' + 'A'
		case c >= 'A' && c <= 'Z', i > 0 && (c == '-' || c == '_'):
		default:
			return false
		}
	}
	return len(method) > 0
}

// name counts an unknown kind by its spelling, as long as that is short and plain.
func (s *Source) name(p *span) {
	text := p.scratch[p.kindText.from:p.kindText.to]
	if len(text) == 0 || len(text) > 32 || !isPlain(text) {
		text = []byte("(other)")
	}
	for i := range s.unknown {
		if s.unknown[i].text == string(text) {
			s.unknown[i].pending++
			return
		}
	}
	if len(s.unknown) < maxNamed {
		s.unknown = append(s.unknown, spelling{text: string(text), pending: 1})
	}
}

func isPlain(text []byte) bool {
	for _, c := range text {
		if !isWord(c) && (c < 'A' || c > 'Z') && c != '_' {
			return false
		}
	}
	return true
}

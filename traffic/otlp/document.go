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
	begun bool   // something of it was read
	taken bool   // its list was met: of two spellings the first counts
	tag   uint64 // the spelling, in protobuf
	end   int64  // offset at which it ends, in protobuf
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
	switch {
	case s.form.isProto():
		ok = s.stepField(f)
	case f.place == inDocuments, f.place == inResourceSpans, f.place == inScopeSpans, f.place == inSpans:
		ok = s.stepArray(f)
	default:
		ok = s.stepObject(f)
	}
	switch {
	case !ok && s.failed():
		s.finish(s.set.Err())
	case !ok:
		s.damage(s.in.why)
	case len(s.stack) == 0:
		s.sound()
	}
}

// failed tells whether reading failed and all that was read before is used up.
func (s *Source) failed() bool { return s.in.r == s.in.w && s.set.Err() != nil }

// finish ends reading.
func (s *Source) finish(err error) {
	s.done = true
	s.frames.close()
	s.skips.EndInput(s.input)
	switch s.err = err; {
	case err != nil:
	case s.skips.Parsed == 0:
		s.err = s.nothing()
	case s.Counts().Spanless == s.skips.Parsed:
		s.err = s.foreign()
	}
}

// openInput goes on to the next input and tells how documents lie in it.
func (s *Source) openInput() {
	if !s.set.Next() {
		s.finish(s.set.Err())
		return
	}
	s.opened, s.within, s.messages = true, false, 0
	s.skips.EndInput(s.input)
	s.input = s.set.Name()
	in := &s.in
	in.reset(s.set)
	in.line, in.why = 1, ""
	if bytes.HasPrefix(in.fill(sniff), []byte("\xef\xbb\xbf")) {
		in.r = 3 // a byte order mark
	}
	head := in.fill(sniff)
	for len(head) == sniff && len(bytes.TrimLeft(head, "\x00")) == 0 {
		in.r += sniff / 2 // padding, of which enough is left to be known as such
		head = in.fill(sniff)
	}
	s.framing = framingOf(head)
	switch s.framing {
	case jsonText:
		s.form = formJSON
	case oneMessage:
		s.form = formProto
	case prefixed:
		s.enframe()
	case strange:
		s.search()
	}
}

// enframe hands what was read of the input to the reader of messages.
func (s *Source) enframe() {
	raw := &s.frames.raw
	raw.reset(s.set)
	*raw, s.in.window = s.in.window, *raw
}

// search looks for the first message of an input that starts with something else: with padding, or
// with the end of a message that log rotation cut.
func (s *Source) search() {
	in := &s.in
	head := in.fill(readBuffer)
	found := findHeader(head)
	switch {
	case found < 0 && s.set.Err() != nil:
		s.finish(s.set.Err())
		return
	case found < 0:
		s.finish(fault.New(fault.TRF002, "%s is of a binary format that is not read; tried to read %s", s.set.Name(), tried).
			WithNext("Let the collector's file exporter write `format: json` or `format: proto`, plain or compressed."))
		return
	case len(bytes.TrimLeft(head[:found], "\x00")) > 0:
		s.messages = 1
		s.refuse("the input does not start with a message", 1)
	}
	in.r += found
	s.framing = prefixed
	s.enframe()
}

// begin starts the next document, or ends the message that holds it, or the input.
func (s *Source) begin() {
	switch {
	case s.framing == prefixed && !s.within:
		s.nextMessage()
	case s.form.isProto():
		s.beginProto()
	default:
		s.beginJSON()
	}
}

// nextMessage goes on to the next message that has its length before it.
func (s *Source) nextMessage() {
	f := &s.frames
	length, ended, some := f.header()
	switch {
	case ended && s.set.Err() != nil:
		s.finish(s.set.Err())
		return
	case ended && some:
		s.messages++
		s.refuse(cutMessage, s.messages)
		s.endInput()
		return
	case ended:
		s.endInput()
		return
	}
	s.messages++
	src, err := f.open(length)
	if err != nil {
		s.finish(fault.New(fault.TRF001, "%s cannot be decompressed: %s", s.set.Name(), err).Because(err))
		return
	}
	s.within = true
	s.in.reset(src)
	head := s.in.fill(1)
	s.form = messageForm(f.zstd, len(head) > 0 && (head[0] == '{' || head[0] == '['))
}

// beginProto starts a protobuf message, or ends the input.
func (s *Source) beginProto() {
	in := &s.in
	end := int64(endless)
	switch {
	case s.framing == prefixed && !s.frames.zstd:
		end = s.frames.size
	case s.framing == oneMessage && len(in.fill(1)) == 0:
		if s.failed() {
			s.finish(s.set.Err())
			return
		}
		s.endInput()
		return
	case s.framing == oneMessage:
		s.messages++
	}
	s.doc = document{line: s.messages}
	in.why = ""
	s.stack = append(s.stack, frame{place: inDocument, end: end})
}

// beginJSON starts the next document of JSON, or ends what holds it.
func (s *Source) beginJSON() {
	in := &s.in
	c, ok := s.between()
	switch {
	case !ok && s.failed():
		s.finish(s.set.Err())
		return
	case !ok && s.framing == prefixed:
		s.within = false
		if problem := s.streamProblem(); problem != "" {
			s.refuse(problem, s.messages)
		}
		return
	case !ok:
		s.endInput()
		return
	}
	s.doc = document{line: in.line}
	if s.framing == prefixed {
		s.doc.line = s.messages
	}
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

// endInput ends an input that was read to its end. Damage of its compression is one lost document.
func (s *Source) endInput() {
	s.opened = false
	if problem := s.set.Problem(); problem != "" {
		s.notes[problem]++
		s.refuse(problem, max(s.in.line, s.messages))
	}
}

// streamProblem is what made the stream that documents are read from end early; empty when it ended
// well.
func (s *Source) streamProblem() string {
	switch {
	case s.framing != prefixed:
		return s.set.Problem()
	case s.frames.cut:
		return cutMessage
	}
	return s.frames.problem
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
	s.seen[s.form] = true
	if s.form.isProto() {
		s.within = false
	}
	if !s.doc.hasRS || s.doc.signal != noSignal && !s.doc.hasSpan {
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

// damage ends a document that does not parse, and reading goes on at the next line or message. Of the
// document nothing is taken but what was given out before.
func (s *Source) damage(why string) {
	s.stack = s.stack[:0]
	if s.framing == prefixed && s.frames.problem != "" {
		why = s.frames.problem
	}
	s.refuse(why, s.doc.line)
	if s.doc.flushed {
		s.notes["damaged document of which the first spans were taken"]++
	}
	s.held, s.texts = s.held[:0], s.texts[:0]
	for i := range s.unknown {
		s.unknown[i].pending = 0
	}
	stream := &s.in.window
	if s.framing == prefixed {
		s.resume()
		stream = &s.frames.raw
	}
	if problem := s.set.Problem(); problem != "" && stream.ended && stream.r == stream.w {
		s.notes[problem]++ // the document is the one that was lost: it is told once
		s.opened = false
		return
	}
	switch {
	case s.framing == oneMessage:
		s.opened = false
	case s.framing == jsonText && !s.in.fresh:
		s.nextLine()
	}
}

// resume goes on at the next message behind a damaged one.
func (s *Source) resume() {
	f := &s.frames
	if !f.zstd {
		unread := s.in.buf[s.in.r:s.in.w]
		f.raw.unread(unread)
		f.left += int64(len(unread))
	}
	s.within = false
	f.resume()
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
		s.skips.First = append(s.skips.First, traffic.Skip{Input: s.set.Name(), Line: line, Reason: why})
	}
}

// take counts the span that was read, and holds it if it is an event.
func (s *Source) take() bool {
	p := &s.span
	if p.signal != noSignal {
		s.doc.signal = p.signal
		return true
	}
	s.doc.hasSpan = true
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
	if traffic.IsOwn(p.first(newAgent, oldAgent)) {
		return ownRequest
	}
	duration := int64(-1)
	if p.start > 0 && p.end >= p.start {
		duration = int64(p.end - p.start)
	} else {
		t.noTime++
	}
	if string(method) == "_OTHER" { // the convention for a method that the instrumentation does not know
		method = p.get(originalMethod)
	}
	route, path, query := p.get(httpRoute), p.path(), p.query()
	switch {
	case !upper(method):
		return noMethod
	case len(route) == 0 && len(path) == 0:
		return noRoute
	case input.HasControl(route) || input.HasControl(path):
		return badText
	case input.HasControl(query):
		return badQuery
	}
	switch {
	case len(route) == 1 && route[0] == '/' && len(path) > 1:
		t.unmatched++
	case isCatchAll(route):
		t.catchAll++
	}
	s.hold(heldEvent{
		at: int64(p.start), duration: duration, status: p.status(),
		method: s.keep(method), route: s.keep(route), path: s.keep(path), query: s.keep(query),
		client: s.keep(p.client()),
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

// isCatchAll tells a route that takes every path: /*, /**, *, /{*path}, /{path...}, /(.*).
func isCatchAll(route []byte) bool {
	if len(route) > 0 && route[0] == '/' {
		route = route[1:]
	}
	if len(route) == 0 || route[0] != '*' && route[0] != '{' && route[0] != '(' || bytes.IndexByte(route, '/') >= 0 {
		return false
	}
	return route[0] == '*' || string(route) == "(.*)" || bytes.HasPrefix(route, []byte("{*")) || bytes.HasSuffix(route, []byte("...}"))
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
